"""`penstock group redrive`: dead letters of a share group, back to where they came from.

How far they have been brought back is committed by a group of its own, `penstock-redrive-GROUP`, after the records are
there: a command that is interrupted goes on where it was, and may bring a few back twice.
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import TYPE_CHECKING, Any

from penstock.cli.failures import Failure
from penstock.cli.options import check_reachable, client_config, confirm, quiet_client
from penstock.cli.output import emit, table

if TYPE_CHECKING:
    from penstock.client import Consumer, Producer, Record, TopicPartition

_PREFIX = "penstock.dead."
_POLL_S = 1.0
_IDLE_MAX = 30
"""polls without a record, before the end that was seen is given up"""


def redrive(args: argparse.Namespace) -> None:
    check_reachable(args.bootstrap_server)
    from penstock.client import Consumer, Producer

    quiet_client()
    servers, config = args.bootstrap_server, client_config(args)
    group = f"penstock-redrive-{args.group}"
    moved: Counter[str] = Counter()
    reading: Consumer[bytes, bytes] = Consumer(servers, group=group, auto_commit=False, config=config)
    writing: Producer[bytes, bytes] = Producer(servers, config=config)
    with writing as producer, reading as consumer:
        begin, ends = _bounds(consumer, args.source)
        waiting = sum(ends[one] - begin[one] for one in ends)
        if waiting and not args.dry_run:
            confirm(args, f"Look through {waiting} dead letter(s) in {args.source} for those of {args.group}?")
        consumer.assign(begin)
        for records in _batches(consumer, begin, ends, args.max):
            moved += _bring_back(args, producer, records)
            if not args.dry_run:
                consumer.commit()
    rows = [{"topic": topic, "records": count} for topic, count in sorted(moved.items())]
    result = {"group": args.group, "from": args.source, "dry_run": args.dry_run, "brought_back": rows}
    emit(args, result, lambda: table(["TOPIC", "RECORDS"], [list(row.values()) for row in rows]))


def _bounds(consumer: Consumer[Any, Any], topic: str) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Where to begin and where to end, in each partition that has something new."""
    partitions = consumer.partitions_for(topic)
    committed = consumer.committed(partitions)
    begin, ends = {}, {}
    for one in partitions:
        low, high = consumer.bounds(one)
        start = max(committed.get(one) or 0, low)
        if start < high:
            begin[one], ends[one] = start, high
    return begin, ends


def _batches(
    consumer: Consumer[Any, Any],
    begin: dict[TopicPartition, int],
    ends: dict[TopicPartition, int],
    most: int | None,
) -> Any:
    """Records up to the ends as they were, at most so many."""
    from penstock.client import TopicPartition

    positions, left, idle = dict(begin), most, 0
    while any(positions[one] < end for one, end in ends.items()) and (left is None or left > 0):
        found = consumer.poll_batch(500 if left is None else min(500, left), _POLL_S)
        idle = 0 if found else idle + 1
        if idle > _IDLE_MAX:
            raise Failure("the dead letters could not be read to their end", "is every partition led by a broker?")
        for record in found:
            positions[TopicPartition(record.topic, record.partition)] = record.offset + 1
        if left is not None:
            left -= len(found)
        if found:
            yield found


def _bring_back(
    args: argparse.Namespace, producer: Producer[Any, Any], records: list[Record[Any, Any]]
) -> Counter[str]:
    moved: Counter[str] = Counter()
    futures = []
    for record in records:
        origin = record.header(f"{_PREFIX}topic")
        if record.header(f"{_PREFIX}group") != args.group.encode() or origin is None:
            continue
        topic = args.to or origin.decode()
        moved[topic] += 1
        if args.dry_run:
            continue
        headers = [one for one in record.headers if not one[0].startswith(_PREFIX)]
        futures.append(producer.send(topic, record.value, key=record.key, headers=headers))
    producer.flush()
    for future in futures:
        future.result()
    return moved
