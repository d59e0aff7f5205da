"""The loads of `penstock bench`, on librdkafka directly: the measuring client must not be the limit."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, Producer, TopicPartition

from penstock.cli.failures import Failure

MEGABYTE = 1_000_000
PERCENTILES = (50.0, 95.0, 99.0, 99.9)
IDLE_LIMIT_S = 15.0
WARM_UP_RECORDS = 20


class Meter(Protocol):
    def __call__(self, done: int) -> None: ...


def produce(args: argparse.Namespace, config: dict[str, str]) -> dict[str, Any]:
    """All records through one producer; a record's latency is from `produce` to its delivery report."""
    producer = Producer(
        {
            "bootstrap.servers": args.bootstrap_server,
            "acks": args.acks,
            "compression.type": args.compression,
            "linger.ms": args.linger,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1_048_576,
            **config,
        }
    )
    value = _payload(args.size)
    latencies: list[float] = []
    errors: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Any) -> None:
        if error is not None:
            errors.append(error)
        else:
            latencies.append(message.latency())

    began = time.perf_counter()
    with _progress(args, "produce") as meter:
        for number in range(args.messages):
            if args.rate:
                _hold(producer, began + number / args.rate)
            _enqueue(producer, args.topic, value, delivered)
            if number & 0xFFF == 0:
                meter(number)
                if errors:
                    break
        producer.flush()
        meter(args.messages)
    took = time.perf_counter() - began
    if errors:
        raise Failure(f"a record was not delivered: {errors[0].str()}", f"{len(errors)} of {args.messages} failed")
    return _throughput(len(latencies), len(latencies) * args.size, took) | _percentiles(latencies)


def _enqueue(producer: Producer, topic: str, value: bytes, delivered: Any) -> None:
    while True:
        try:
            producer.produce(topic, value, on_delivery=delivered)
            producer.poll(0)
            return
        except BufferError:
            producer.poll(0.05)


def _hold(producer: Producer, until: float) -> None:
    while (left := until - time.perf_counter()) > 0:
        producer.poll(left)


def consume(args: argparse.Namespace, config: dict[str, str]) -> dict[str, Any]:
    """From the start of every partition; the clock starts with the first record, so that connecting does not count."""
    consumer = Consumer(
        {
            "bootstrap.servers": args.bootstrap_server,
            "group.id": "penstock.bench",
            "enable.auto.commit": False,
            "queued.max.messages.kbytes": 262_144,
            "fetch.message.max.bytes": 4_194_304,
            "enable.partition.eof": True,
            **config,
        }
    )
    try:
        partitions = sorted(consumer.list_topics(args.topic, timeout=args.timeout).topics[args.topic].partitions)
        asked = time.perf_counter()
        consumer.assign([TopicPartition(args.topic, p, OFFSET_BEGINNING) for p in partitions])
        count = size = 0
        ended: set[int] = set()
        began = heard = asked
        with _progress(args, "consume") as meter:
            while count < args.messages and len(ended) < len(partitions):
                for message in consumer.consume(min(10_000, args.messages - count), 0.2):
                    heard = time.perf_counter()
                    if not count:
                        began = heard
                    error = message.error()
                    if error is None:
                        count += 1
                        size += len(message)
                    elif error.code() == KafkaError._PARTITION_EOF:
                        ended.add(message.partition() or 0)
                    else:
                        raise Failure(f"reading failed: {error.str()}")
                meter(count)
                if time.perf_counter() - heard > IDLE_LIMIT_S:
                    raise Failure(f"nothing came for {IDLE_LIMIT_S:g} s after {count} records")
    finally:
        consumer.close()
    if not count:
        raise Failure(f"{args.topic} is empty", "fill it first: penstock bench produce")
    return _throughput(count, size, heard - began) | {"first_record_ms": (began - asked) * 1000}


def end_to_end(args: argparse.Namespace, config: dict[str, str]) -> dict[str, Any]:
    """From `produce` to the same record out of `poll`, over one partition, at a rate or one record after another."""
    shared = {"bootstrap.servers": args.bootstrap_server, **config}
    producer = Producer({"linger.ms": 0, "acks": args.acks, "compression.type": args.compression, **shared})
    consumer = Consumer(
        {
            "group.id": "penstock.bench",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 100,
            "fetch.error.backoff.ms": 1,
        }
        | shared
    )
    try:
        position = consumer.get_watermark_offsets(TopicPartition(args.topic, 0), timeout=args.timeout)[1]
        consumer.assign([TopicPartition(args.topic, 0, position if position >= 0 else OFFSET_END)])
        run = _EndToEnd(args, producer, consumer)
        run.warm_up()
        with _progress(args, "e2e") as meter:
            began = time.perf_counter()
            run.go(meter)
            took = time.perf_counter() - began
    finally:
        producer.flush(IDLE_LIMIT_S)
        consumer.close()
    return _throughput(len(run.latencies), len(run.latencies) * args.size, took) | _percentiles(run.latencies)


class _EndToEnd:
    """The send time travels in the record's first bytes."""

    def __init__(self, args: argparse.Namespace, producer: Producer, consumer: Consumer) -> None:
        self.args = args
        self.producer = producer
        self.consumer = consumer
        self.latencies: list[float] = []
        self.under_way = 0
        self.padding = _payload(max(0, args.size - 8))

    def warm_up(self) -> None:
        """Connections, metadata and the first fetch are not what is measured."""
        for _ in range(WARM_UP_RECORDS):
            self._send()
            self._drain()
        self.latencies.clear()

    def go(self, meter: Meter) -> None:
        began = time.perf_counter()
        for number in range(self.args.messages):
            if self.args.rate:
                due = began + number / self.args.rate
                while (left := due - time.perf_counter()) > 0:
                    self._take(left)
            self._send()
            if not self.args.rate:
                self._drain()
            if number & 0xFF == 0:
                meter(number)
        self._drain()
        meter(self.args.messages)

    def _send(self) -> None:
        stamp = time.perf_counter_ns().to_bytes(8, "big")
        self.producer.produce(self.args.topic, stamp + self.padding, partition=0)
        self.producer.poll(0)
        self.under_way += 1

    def _drain(self) -> None:
        deadline = time.perf_counter() + IDLE_LIMIT_S
        while self.under_way:
            self._take(0.1)
            if time.perf_counter() > deadline:
                raise Failure(f"{self.under_way} record(s) did not arrive within {IDLE_LIMIT_S:g} s")

    def _take(self, timeout_s: float) -> None:
        message = self.consumer.poll(timeout_s)
        if message is None or message.error() is not None:
            return
        sent = int.from_bytes((message.value() or b"")[:8], "big")
        self.latencies.append((time.perf_counter_ns() - sent) / 1e9)
        self.under_way -= 1


def _payload(size: int) -> bytes:
    """Bytes that compress about as well as text does, the same in every run."""
    return (b"The quick brown fox jumps over the lazy dog 0123456789. " * (size // 56 + 1))[:size]


def _throughput(count: int, size: int, took: float) -> dict[str, Any]:
    took = max(took, 1e-9)
    return {
        "records": count,
        "seconds": round(took, 3),
        "records_per_second": round(count / took),
        "megabytes_per_second": round(size / took / MEGABYTE, 2),
    }


def _percentiles(latencies: list[float]) -> dict[str, float]:
    ordered = sorted(latencies)
    if not ordered:
        return {}
    found = {
        f"latency_p{p:g}_ms".replace(".", "_"): ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))]
        for p in PERCENTILES
    }
    found["latency_max_ms"] = ordered[-1]
    return {name: round(value * 1000, 3) for name, value in found.items()}


@contextmanager
def _progress(args: argparse.Namespace, label: str) -> Iterator[Meter]:
    if args.no_progress or args.format == "json" or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=args.messages)
        yield lambda done: bar.update(task, completed=done)
