"""`penstock txn`: transactional ids, their transactions, and an end for one that hangs."""

from __future__ import annotations

import argparse
import time

from penstock.cli.failures import Failure, Usage
from penstock.cli.options import add_dry_run, add_yes, confirm, subcommand
from penstock.cli.output import emit, fields, table
from penstock.cli.own_client import own_client

ABORT_HELP = """\
A transaction hangs where its coordinator knows nothing of it any more: readers of committed records wait for ever at
its first offset. This writes the marker that ends it in one partition, as kafka-transactions abort does.

  penstock txn abort orders 0 --start-offset 1234 --dry-run
  penstock txn abort orders 0 --start-offset 1234 --yes"""

UNKNOWN_HINT = "`penstock txn list` lists them; one that is not used for transactional.id.expiration.ms is forgotten"


def configure(parser: argparse.ArgumentParser) -> None:
    sub = parser.add_subparsers(metavar="ACTION", title="actions")
    listing = subcommand(sub, "list", "list transactional ids and their states", list_ids, aliases=["ls"])
    listing.add_argument("--state", action="append", default=[], metavar="STATE", help="only these, as Ongoing")
    describe = subcommand(sub, "describe", "a transactional id, its producer and its open transaction", describe_id)
    describe.add_argument("id")
    abort = subcommand(sub, "abort", "abort a transaction that hangs in a partition", abort_hanging, epilog=ABORT_HELP)
    abort.add_argument("topic")
    abort.add_argument("partition", type=int)
    abort.add_argument(
        "--start-offset", type=int, metavar="N", help="where it begins; not needed where only one is open"
    )
    add_yes(abort)
    add_dry_run(abort)


def list_ids(args: argparse.Namespace) -> None:
    from penstock.wire.transaction_admin import list_transactions

    with own_client(args) as client:
        found = client.run(list_transactions(client.cluster, args.state))
    rows = [
        {"id": one.transactional_id, "producer_id": one.producer_id, "state": one.transaction_state}
        for one in sorted(found, key=lambda one: one.transactional_id)
    ]
    emit(args, rows, lambda: table(["ID", "PRODUCER", "STATE"], [list(row.values()) for row in rows]))


def describe_id(args: argparse.Namespace) -> None:
    from penstock.base.errors import ErrorCode, KafkaError
    from penstock.wire.transaction_admin import describe_transaction

    with own_client(args) as client:
        try:
            found = client.run(describe_transaction(client.cluster, args.id))
        except KafkaError as error:
            if error.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise Failure(f"no transactional id {args.id!r} is known", UNKNOWN_HINT) from None
            raise
    started_ms = found.transaction_start_time_ms
    result = {
        "id": found.transactional_id,
        "state": found.transaction_state,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "timeout_ms": found.transaction_timeout_ms,
        "open_ms": int(time.time() * 1000) - started_ms if found.transaction_state == "Ongoing" else None,
        "partitions": [f"{one.topic}-{index}" for one in found.topics for index in one.partitions],
    }
    emit(args, result, lambda: fields(result))


def abort_hanging(args: argparse.Namespace) -> None:
    from penstock.base.ids import TopicPartition
    from penstock.wire.transaction_admin import abort_in_partition, open_transactions

    place = TopicPartition(args.topic, args.partition)
    with own_client(args) as client:
        found = client.run(open_transactions(client.cluster, place))
        if args.start_offset is not None:
            found = [one for one in found if one.current_txn_start_offset == args.start_offset]
        if not found:
            raise Failure(f"no such transaction is open in {place}", "`penstock txn list --state Ongoing` lists ids")
        if len(found) > 1:
            offsets = ", ".join(str(one.current_txn_start_offset) for one in found)
            raise Usage(f"several transactions are open in {place}: choose by --start-offset one of {offsets}")
        (producer,) = found
        if not args.dry_run:
            confirm(args, f"Abort the transaction of producer {producer.producer_id} in {place}?")
            client.run(abort_in_partition(client.cluster, place, producer))
    verb = "would abort" if args.dry_run else "aborted"
    result = {
        "partition": str(place),
        "producer_id": producer.producer_id,
        "start_offset": producer.current_txn_start_offset,
        "dry_run": args.dry_run,
    }
    text = f"{verb} the transaction of producer {producer.producer_id} from offset {producer.current_txn_start_offset}"
    emit(args, result, lambda: print(text))
