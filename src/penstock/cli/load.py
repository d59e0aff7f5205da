"""`penstock load`: topics into a Parquet, Delta or Iceberg table, exactly once; and a table back into a topic."""

from __future__ import annotations

import argparse
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.failures import Failure, Usage
from penstock.cli.options import add_client, check_reachable, client_config, pairs, quiet_client, spark_settings
from penstock.cli.output import emit, note

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.pipeline.lake import Load

HELP = """\
what a topic holds now, into a directory of Parquet files by day
  penstock load orders --to lake/orders --value-format json --value-schema 'customer STRING, amount INT' --once

a Delta table that follows the topic, its small files merged now and then
  penstock load orders --to lake/orders --as delta --value-format avro --value-schema orders.avsc --compact

an Iceberg table in an object store, in a catalogue of its own, by a time inside the value
  penstock load orders --to s3://lake/orders --as iceberg --catalog type=rest --catalog uri=http://catalog:8181 \\
      --table shop.orders --value-format json --value-schema orders.json --time-field at --checkpoint /var/lib/orders

the rows back into a topic
  penstock load orders-again --to lake/orders --replay"""
_LOOK_EVERY_S = 0.25


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = HELP
    parser.add_argument("topics", metavar="TOPIC", nargs="+", help="what to load; with --replay the topic to write")
    parser.add_argument("--to", required=True, metavar="DIR", help="the table: a directory, or a URI such as s3://...")
    parser.add_argument(
        "--as", dest="kind", choices=["parquet", "delta", "iceberg"], default="parquet", help="its format (parquet)"
    )
    parser.add_argument("--once", action="store_true", help="end when everything that is there now has been loaded")
    parser.add_argument(
        "--by", choices=["day", "hour", "none"], default="day", help="how it is partitioned, by the event's time (day)"
    )
    parser.add_argument("--time-field", metavar="NAME", help="a field of the value is the event's time")
    parser.add_argument("--compact", action="store_true", help="merge small files: at the end, and every 100 batches")
    parser.add_argument("--replay", action="store_true", help="the other way: the table's rows into the topic")
    parser.set_defaults(handler=run)
    _add_formats(parser.add_argument_group("keys and values"))
    _add_tables(parser.add_argument_group("tables"))
    _add_running(parser.add_argument_group("running"))
    add_client(parser)


def _add_formats(group: Any) -> None:
    for side in ("value", "key"):
        group.add_argument(
            f"--{side}-format", metavar="FORMAT", help="bytes, text, json, avro, protobuf, int, long, double (bytes)"
        )
        group.add_argument(
            f"--{side}-schema", metavar="SCHEMA", help="Spark's DDL or JSON Schema, an Avro schema, .proto; or its file"
        )
    group.add_argument("--registry", metavar="URL", help="where schemas come from instead")
    group.add_argument("--headers", action="store_true", help="a column for the records' headers")
    group.add_argument("--raw", action="store_true", help="a column for the value as it was: replays are exact")
    group.add_argument(
        "--errors",
        choices=["fail", "keep", "skip"],
        default="fail",
        help="a record that cannot be decoded: stop, keep it as bytes with a reason, or leave it out (fail)",
    )
    group.add_argument("--dead-letters", metavar="TOPIC", help="where such records go instead")
    group.add_argument(
        "--lost",
        choices=["fail", "skip"],
        default="fail",
        help="records that were deleted before they were loaded: stop, or load what is left (fail)",
    )


def _add_tables(group: Any) -> None:
    group.add_argument("--catalog", action="append", default=[], metavar="KEY=VALUE", help="of PyIceberg's catalogue")
    group.add_argument("--table", metavar="NAME", help="Iceberg: namespace and name (lake. and the directory's name)")
    group.add_argument("--storage", action="append", default=[], metavar="KEY=VALUE", help="of an object store")
    group.add_argument("--file-mb", type=int, default=128, metavar="MB", help="how large a file should be (128)")
    group.add_argument("--source", metavar="TOPIC", help="with --replay: rows of which topic, where there are several")


def _add_running(group: Any) -> None:
    group.add_argument("--checkpoint", metavar="DIR", help="where its progress is kept (in the table's directory)")
    group.add_argument("--interval", metavar="TIME", help='begin a batch that often, for example "1 minute"')
    group.add_argument("--batch-records", type=int, metavar="N", help="in one batch at most (2000000)")
    group.add_argument("--starting", choices=["earliest", "latest"], help="in an empty table (earliest)")
    group.add_argument("--master", help="Spark's master (local[*])")
    group.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark")


def run(args: argparse.Namespace) -> int:
    check_reachable(args.bootstrap_server)
    try:
        from penstock.pipeline.java import JavaMissing
        from penstock.pipeline.lake.errors import LakeError
    except ImportError as missing:
        raise Failure(
            f"this needs {missing.name}, which is not installed", "pip install 'penstock[spark,lake]'"
        ) from None
    quiet_client()
    try:
        return _replay(args) if args.replay else _load(args)
    except (LakeError, JavaMissing) as error:
        raise Failure(str(error)) from None


def _load(args: argparse.Namespace) -> int:
    from penstock.pipeline.lake import load
    from penstock.pipeline.lake.loading import NO_CONNECT
    from penstock.pipeline.quiet import quiet_failures
    from penstock.pipeline.spark import is_connect, session

    if is_connect(args.master):
        raise Usage(NO_CONNECT)
    conf = _checked(args)

    def start() -> SparkSession:
        spark = session("penstock-load", args.master, **conf)
        quiet_failures(spark)
        return spark

    started = load(
        args.topics,
        args.to,
        bootstrap=args.bootstrap_server,
        kind=args.kind,
        by=args.by,
        once=args.once,
        options={**_formats(args), **_source(args)},
        time_field=args.time_field,
        headers=args.headers,
        raw=args.raw,
        errors=args.errors,
        lost=args.lost,
        dead_letters=args.dead_letters,
        compact=args.compact,
        checkpoint=args.checkpoint,
        interval=args.interval,
        file_bytes=args.file_mb << 20,
        storage=pairs(args.storage, "the storage option"),
        catalog=pairs(args.catalog, "the catalogue's property"),
        table=args.table,
        kafka=client_config(args),
        spark=start,
    )
    _follow(started, " ".join(args.topics), args.to)
    compacted = started.table.compact() if args.compact else None
    _tell(args, started, compacted)
    return 0


def _checked(args: argparse.Namespace) -> dict[str, str]:
    """Spark's settings. What can be told before Spark is started is told before."""
    if args.once and args.interval is not None:
        raise Usage("--once loads what is there and ends, --interval goes on", "leave one of them out")
    for name in ("file_mb", "batch_records"):
        if getattr(args, name) is not None and getattr(args, name) < 1:
            raise Usage(f"--{name.replace('_', '-')} is a whole number above 0, not {getattr(args, name)}")
    return spark_settings(args)


def _follow(started: Load, topics: str, to: str) -> None:
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    note(f"loading {topics} into {to}; Ctrl-C stops after the batch that is under way")
    seen = 0
    while not started.wait(_LOOK_EVERY_S):
        totals = started.totals
        if totals.batches != seen:
            seen = totals.batches
            note(f"batch {totals.batch}: {totals.rows} rows in {totals.files} files so far")
        if stopping.is_set():
            started.stop()
            return


def _tell(args: argparse.Namespace, started: Load, compacted: Any) -> None:
    totals = started.totals
    told: dict[str, Any] = {"to": args.to, "rows": totals.rows, "files": totals.files, "batches": totals.batches}
    if compacted is not None:
        told |= {"files_merged": compacted.removed, "files_made": compacted.added}

    def text() -> None:
        print(f"{totals.rows} rows in {totals.files} files, {totals.batches} batches, in {args.to}")
        if compacted is not None and compacted.removed:
            print(f"{compacted.removed} small files became {compacted.added}")

    emit(args, told, text)


def _replay(args: argparse.Namespace) -> int:
    from penstock.pipeline.lake import open_table, replay

    if len(args.topics) != 1:
        raise Usage("a replay writes to one topic", "name one; --source says which topic's rows")
    table = open_table(
        args.to,
        args.kind,
        storage=pairs(args.storage, "the storage option"),
        catalog=pairs(args.catalog, "the catalogue's property"),
        name=args.table,
    )
    done = replay(
        table,
        args.topics[0],
        bootstrap=args.bootstrap_server,
        source=args.source,
        options=_formats(args),
        kafka=client_config(args),
    )
    emit(args, done, lambda: print(f"{done.records} records into {done.topic}, {done.partitions} partitions"))
    return 0


def _formats(args: argparse.Namespace) -> dict[str, str]:
    given = {
        "valueFormat": args.value_format,
        "keyFormat": args.key_format,
        "valueSchema": _schema(args.value_schema),
        "keySchema": _schema(args.key_schema),
        "schema.registry.url": args.registry,
    }
    return {name: value for name, value in given.items() if value is not None}


def _source(args: argparse.Namespace) -> dict[str, str]:
    given = {"maxOffsetsPerTrigger": args.batch_records, "startingOffsets": args.starting}
    return {name: str(value) for name, value in given.items() if value is not None}


def _schema(text: str | None) -> str | None:
    """A schema, or the name of a file that holds one."""
    if text is None or any(sign in text for sign in "{\n ") or not Path(text).is_file():
        return text
    return Path(text).read_text()
