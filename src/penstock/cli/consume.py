"""`penstock consume`: records from anywhere in topics, in any format."""

from __future__ import annotations

import argparse
import fnmatch
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from penstock.cli.failures import REQUEST_TIMED_OUT, Usage
from penstock.cli.offsets import Place, parse_range
from penstock.cli.options import add_client, check_reachable, client_config, make_admin, quiet_client
from penstock.cli.output import note
from penstock.cli.record_format import Printer, compile_format

if TYPE_CHECKING:
    from penstock.client import ClientError, Consumer, Record, TopicPartition

    Filter = Callable[[Record[bytes, bytes]], bool]

HELP = """\
where to begin (-o):
  start  end  1234  +5 (five behind the start)  -10 (the last ten of each partition)
  @-1h  @2026-01-01T00:00:00  @1767225600000       from a time
  @-1h..@-30m   start..1000   -100..end            a range: stops at its end

formats (-f):
  %v value  %k key  %h headers  %t topic  %p partition  %o offset  %d timestamp  \\n newline
  %v{hex}  %d{iso}  %d{strftime[%F %T]}  %h{%k=%v;}       json  jsonl  table  raw

examples:
  penstock consume orders -o -10 --exit
  penstock consume orders -o @-1h -f '%p:%o %k %v\\n'
  penstock consume orders -o start --exit -f json | jq .value
  penstock consume orders -g billing --filter 'key=eu-*'"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = HELP
    parser.add_argument("topic", nargs="+")
    parser.add_argument("-o", "--offset", metavar="PLACE", help="where to begin (end; start with --exit), see below")
    parser.add_argument("-n", "--count", type=int, metavar="N", help="stop after N records")
    parser.add_argument("-f", "--output", metavar="FORMAT", help="how a record is printed ('%%v\\n'), see below")
    parser.add_argument("-g", "--group", help="as a member of this group, committing what was printed")
    parser.add_argument("-p", "--partition", type=int, action="append", help="only this partition; may be repeated")
    parser.add_argument("-Z", "--null", action="store_true", help="print NULL where a key or value is null")
    parser.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="WHAT=GLOB",
        help="only records whose key=GLOB, value=GLOB or header.NAME=GLOB; several must all hold",
    )
    parser.add_argument("--uncommitted", action="store_true", help="records of open and aborted transactions too")
    ending = parser.add_mutually_exclusive_group()
    ending.add_argument("-e", "--exit", action="store_true", help="stop at the end of the topic")
    ending.add_argument("--follow", action="store_true", help="wait for more at the end (what it does anyway)")
    add_client(parser)
    parser.set_defaults(handler=consume)


def consume(args: argparse.Namespace) -> None:
    template = args.output or ("json" if args.format == "json" else r"%v\n")
    printer = compile_format(template, b"NULL" if args.null else b"")
    run(args, printer)


def run(args: argparse.Namespace, printer: Printer) -> None:
    if args.group and (args.partition or args.offset not in (None, "start", "end")):
        raise Usage("a group decides about partitions and offsets itself", "leave out -p and -o, or -g")
    filters = [parse_filter(text) for text in args.filter]
    check_reachable(args.bootstrap_server)
    from penstock.client import Consumer

    quiet_client()
    config: dict[str, Any] = {"enable.partition.eof": True, "allow.auto.create.topics": False, **client_config(args)}
    consumer: Consumer[bytes, bytes] = Consumer(
        args.bootstrap_server,
        group=args.group,
        start_at="earliest" if args.exit or args.offset == "start" else "latest",
        isolation="read_uncommitted" if args.uncommitted else "read_committed",
        config=config,
    )
    with consumer:
        pump = Pump(consumer, printer, filters, _begin(args, consumer), args.count, args.timeout)
        with pump.interruptible():
            pump.run()
    if pump.interrupted:
        raise KeyboardInterrupt


def _begin(args: argparse.Namespace, consumer: Consumer[bytes, bytes]) -> dict[TopicPartition, int] | None:
    """Subscribes or assigns; where each partition ends, or None to follow for ever."""
    with make_admin(args) as admin:
        known = admin.describe_topics(args.topic)
        if args.group:
            consumer.subscribe(args.topic)
            return {} if args.exit else None
        from penstock.client import TopicPartition

        partitions = [
            TopicPartition(t.name, p.partition)
            for t in known
            for p in t.partitions
            if not args.partition or p.partition in args.partition
        ]
        if not partitions:
            raise Usage(f"there is no partition {args.partition} in {', '.join(args.topic)}")
        first, last = parse_range(args.offset or ("start" if args.exit else "end"))
        begins = first.resolve(admin, partitions)
        consumer.assign(begins)
        if last is None and not args.exit:
            return None
        ends = (last or Place("end")).resolve(admin, partitions)
        return {t: end for t, end in ends.items() if end > begins[t]}


class Pump:
    """Records from a consumer to stdout until there are enough, or every partition has reached its end."""

    def __init__(
        self,
        consumer: Consumer[bytes, bytes],
        printer: Printer,
        filters: list[Filter],
        ends: dict[TopicPartition, int] | None,
        count: int | None,
        timeout_s: float,
    ) -> None:
        self.consumer = consumer
        self.printer = printer
        self.filters = filters
        self.ends = ends
        self.count = count
        self.timeout_s = timeout_s
        """where there is an end: how long nothing may come that brings it nearer"""
        self.printed = 0
        self.interrupted = False

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Ctrl-C ends the pump between two batches, so that what is printed is what is committed. A second one, or one
        outside, ends the command at once."""

        def stop(*_: object) -> None:
            if self.interrupted:
                raise KeyboardInterrupt
            self.interrupted = True

        before = signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def run(self) -> None:
        out = sys.stdout.buffer
        heard, heard_s = self._heard(), time.monotonic()
        while not self.interrupted and not self._done():
            wanted = 500 if self.count is None or self.filters else min(500, self.count - self.printed)
            found = self.consumer.poll_batch(wanted, 0.2)
            if not found and reader_is_gone():
                raise BrokenPipeError
            for record in found:
                if self._wanted(record):
                    out.write(self.printer(record, self.printed))
                    self.printed += 1
                    if self.printed == self.count:
                        break
            out.flush()
            if found:
                heard_s = time.monotonic()
            elif self.ends is not None:
                before, heard = heard, self._heard()
                if heard != before:
                    heard_s = time.monotonic()
                elif time.monotonic() - heard_s > self.timeout_s:
                    raise self._silence()

    def _heard(self) -> tuple[list[TopicPartition], int]:
        """What brokers have told besides records: which partitions are ours, and the ends of how many."""
        return self.consumer.assignment(), len(self.consumer.at_end)

    def _silence(self) -> ClientError:
        from penstock.client import ClientError
        from penstock.client.errors import listed

        assigned = self.consumer.assignment()
        left = listed([t for t in assigned if t not in self.consumer.at_end])
        what = f"nothing came of {left}" if assigned else f"the group {self.consumer.group!r} gave no partition to read"
        return ClientError(f"{what} within {self.timeout_s:g} s", code=REQUEST_TIMED_OUT)

    def _wanted(self, record: Record[bytes, bytes]) -> bool:
        if self.ends is not None and self.consumer.group is None:
            from penstock.client import TopicPartition

            if record.offset >= self.ends.get(TopicPartition(record.topic, record.partition), 0):
                return False
        return all(holds(record) for holds in self.filters)

    def _done(self) -> bool:
        if self.count is not None and self.printed >= self.count:
            return True
        if self.ends is None or self.consumer.buffered:
            return False
        if self.consumer.group is not None:
            assigned = self.consumer.assignment()
            return bool(assigned) and all(t in self.consumer.at_end for t in assigned)
        return all(t in self.consumer.at_end or (self.consumer.position(t) or 0) >= end for t, end in self.ends.items())


def reader_is_gone() -> bool:
    """`consume | head -1`: where nothing more arrives, no write would ever tell that nobody reads."""
    watch = select.poll()
    watch.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in watch.poll(0))


def parse_filter(text: str) -> Filter:
    """key=GLOB, value=GLOB or header.NAME=GLOB."""
    what, equals, glob = text.partition("=")
    if not equals or not (what in ("key", "value") or what.startswith("header.")):
        raise Usage(f"{text!r} is no filter", "write key=GLOB, value=GLOB or header.NAME=GLOB")

    def matches(data: bytes | None) -> bool:
        return data is not None and fnmatch.fnmatchcase(data.decode(errors="replace"), glob)

    if what == "key":
        return lambda record: matches(record.key)
    if what == "value":
        return lambda record: matches(record.value)
    return lambda record: any(matches(value) for name, value in record.headers if name == what[7:])


def say_where(args: argparse.Namespace) -> None:
    note(f"following {', '.join(args.topic)} on {args.bootstrap_server}; Ctrl-C ends")
