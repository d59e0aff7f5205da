"""`penstock produce`: records from arguments or stdin."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from penstock.cli.failures import Failure, Usage
from penstock.cli.options import add_client, check_reachable, client_config, quiet_client
from penstock.cli.output import is_json, note
from penstock.cli.record_input import Input, json_records, records

if TYPE_CHECKING:
    from concurrent.futures import Future

    from penstock.client import Producer, RecordMetadata, TopicPartition

HELP = """\
input: the values given as arguments, else stdin, a record a line
  -K:            'key:value' lines
  -f '%k\\t%v\\n'  any layout: %k key, %v value, %t topic, %p partition, %d timestamp in ms
  -f json        what `consume -f json` prints: {"key": ..., "value": ..., "headers": [...], "partition": ...}
                 a value that is an object or a list is sent as JSON

examples:
  penstock produce orders 'one' 'two' -k customer-7
  penstock produce orders -K, < orders.csv
  penstock produce orders -H trace:42 -z zstd < events.txt
  penstock consume orders -o start -e -f json | penstock produce copy -f json"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = HELP
    parser.add_argument("topic")
    parser.add_argument("value", nargs="*", default=[], help="values; stdin where there are none")
    parser.add_argument("-k", "--key", help="the key of every record that brings none")
    parser.add_argument(
        "-H", "--header", action="append", default=[], metavar="NAME:VALUE", help="a header of every record"
    )
    parser.add_argument("-p", "--partition", type=int, help="this partition, whatever the key")
    parser.add_argument(
        "-z", "--compression", choices=["none", "gzip", "snappy", "lz4", "zstd"], help="codec of the batches"
    )
    parser.add_argument("--acks", choices=["0", "1", "all", "-1"], default="all", help="who must have the record (all)")
    parser.add_argument("-f", "--input", metavar="FORMAT", help="layout of stdin ('%%v\\n'), or json")
    parser.add_argument("-K", "--key-delimiter", metavar="D", help="a line is key, D, value")
    parser.add_argument("-Z", "--null", action="store_true", help="an empty key or value is sent as null")
    parser.add_argument("--rate", type=float, metavar="N", help="at most N records a second")
    parser.add_argument("--timestamp", type=int, metavar="MS", help="timestamp of every record that brings none")
    add_client(parser)
    parser.set_defaults(handler=produce)


def produce(args: argparse.Namespace) -> None:
    if args.input and (args.key_delimiter or args.value):
        raise Usage("-f is about stdin, and says itself where the key is", "leave out -K and the values, or -f")
    headers = [_header(text) for text in args.header]
    check_reachable(args.bootstrap_server)
    from penstock.client import Producer

    quiet_client()
    producer = Producer[bytes, bytes](
        args.bootstrap_server, acks=args.acks, compression=args.compression, config=_config(args)
    )
    try:
        _send_all(args, producer, headers)
    finally:
        producer.close(args.timeout)


def _send_all(args: argparse.Namespace, producer: Producer[bytes, bytes], headers: list[tuple[str, bytes]]) -> None:
    known = producer.partitions_for(args.topic, args.timeout)
    if args.partition is not None and args.partition not in known:
        raise Failure(f"{args.topic} has no partition {args.partition}", f"it has {len(known)}: 0 to {len(known) - 1}")
    tally = Tally(args, producer)
    for item in _paced(_source(args), args.rate):
        tally.send(item, headers)
    tally.finish()


def _config(args: argparse.Namespace) -> dict[str, Any]:
    interactive = bool(args.value) or sys.stdin.isatty()
    return {"linger.ms": 0 if interactive else 20, **client_config(args)}


def _source(args: argparse.Namespace) -> Iterator[Input]:
    if args.value:
        return iter([Input(_nulled(value.encode(), args.null)) for value in args.value])
    stdin: BinaryIO = sys.stdin.buffer
    if stdin.isatty():
        note(f"one record a line to {args.topic}; Ctrl-D ends")
    if args.input == "json":
        return json_records(stdin)
    template = args.input or (f"%k{args.key_delimiter}%v\\n" if args.key_delimiter else r"%v\n")
    return records(stdin, template, null=args.null)


def _nulled(data: bytes, empty_is_null: bool) -> bytes | None:
    return None if empty_is_null and not data else data


def _header(text: str) -> tuple[str, bytes]:
    at = min((i for i in (text.find(":"), text.find("=")) if i > 0), default=0)
    if not at:
        raise Usage(f"the header {text!r} is not of the form name:value")
    return text[:at], text[at + 1 :].encode()


def _paced(items: Iterator[Input], rate: float | None) -> Iterator[Input]:
    if rate is None:
        yield from items
        return
    begin = time.monotonic()
    for number, item in enumerate(items):
        wait = begin + number / rate - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        yield item


def _given_up(futures: list[Future[RecordMetadata]]) -> list[TopicPartition]:
    """Where records were going to whose producer is closed."""
    from penstock.client import ClientError

    errors = [future.exception() for future in futures if future.done()]
    found = {one.bound_for for one in errors if isinstance(one, ClientError) and one.bound_for is not None}
    return sorted(found)


class Tally:
    """Sends, and keeps account of where records landed; the first failure ends it."""

    def __init__(self, args: argparse.Namespace, producer: Producer[bytes, bytes]) -> None:
        self.args = args
        self.producer = producer
        self.sent = 0
        self.landed: dict[tuple[str, int], list[int]] = {}
        self.waiting: list[Future[RecordMetadata]] = []

    def send(self, item: Input, headers: list[tuple[str, bytes]]) -> None:
        args = self.args
        key = item.key if item.key is not None or args.key is None else args.key.encode()
        self.waiting.append(
            self.producer.send(
                item.topic or args.topic,
                item.value,
                key,
                [*headers, *item.headers] or None,
                item.partition if args.partition is None else args.partition,
                item.timestamp_ms if item.timestamp_ms is not None else args.timestamp,
            )
        )
        self.sent += 1
        if len(self.waiting) >= 10_000 or sys.stdin.isatty():
            self._collect()

    def _collect(self) -> None:
        import msgspec

        for future in self.waiting:
            try:
                done = future.result(self.args.timeout)
            except TimeoutError:
                raise self._unacknowledged() from None
            self.landed.setdefault((done.topic, done.partition), []).append(done.offset)
            if is_json(self.args):
                print(msgspec.json.encode(done).decode())
        self.waiting.clear()

    def _unacknowledged(self) -> Failure:
        """Lets go of what is under way: the library then says where it was going to."""
        from penstock.cli.unacknowledged import explain_silence

        under_way = [future for future in self.waiting if not future.done()]
        self.producer.close(0)
        return explain_silence(self.args, len(under_way), _given_up(under_way))

    def finish(self) -> None:
        if self.producer.flush(self.args.timeout) and any(not future.done() for future in self.waiting):
            raise self._unacknowledged()
        self._collect()
        if is_json(self.args):
            return
        for (topic, partition), offsets in sorted(self.landed.items()):
            span = str(offsets[0]) if len(offsets) == 1 else f"{min(offsets)}..{max(offsets)}"
            print(f"{topic}-{partition}: {len(offsets)} record{'s'[: len(offsets) > 1]} at {span}")
        if not self.sent:
            note("there was nothing to send")
