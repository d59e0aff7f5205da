"""`penstock sql`: queries over topics, answered by DuckDB here or by Spark, once or continuously."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.consume import reader_is_gone
from penstock.cli.failures import Failure, Usage
from penstock.cli.options import add_client, check_reachable, client_config
from penstock.cli.output import emit, note

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.sql.asking import Answer, Question
    from penstock.sql.planning import Plan

HELP = """\
topics are tables: key, value, topic, partition, offset, timestamp, timestampType, headers, and the members of values
  penstock sql 'show tables'
  penstock sql 'describe orders'
  penstock sql 'select country, count(*), sum(amount) from orders group by country'
  penstock sql 'select o.id, c.name from orders o join "crm.customers" c on o.customer = c.id limit 10'

history: a topic as it was
  from orders AS OF OFFSET 1000       AS OF OFFSETS '{"0": 5, "1": 7}'       AS OF TIMESTAMP '2026-11-01 10:00'

what is not read: conditions on partition, offset and timestamp in WHERE narrow the ranges (--explain shows them)
  penstock sql "select count(*) from orders where timestamp > now() - interval '1 hour' and partition = 0"

continuously: rows as they come, or groups as they change
  penstock sql --stream "select country, count(*) from orders group by country"

formats of keys and values: told from a sample, or chosen, for all topics or for one
  penstock sql --value-format json --value-schema orders=orders.avsc --key-format clicks=long 'select ...'"""
NEEDED = ("duckdb", "sqlglot", "pyarrow", "numba")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = HELP
    parser.add_argument("query", help="the query; - reads it from stdin")
    parser.add_argument("--engine", choices=["duckdb", "spark"], default="duckdb", help="who answers (duckdb)")
    parser.add_argument("--stream", action="store_true", help="a continuous result: history, then what arrives")
    parser.add_argument("--explain", action="store_true", help="only say what would be read, and how")
    parser.add_argument("--time", action="store_true", help="tell on stderr when the first row and the last one came")
    parser.add_argument("--uncommitted", action="store_true", help="records of open and aborted transactions too")
    parser.add_argument("--master", help="Spark's master, or sc://HOST:PORT (local[*])")
    formats = parser.add_argument_group("formats, each for all topics or as TOPIC=...")
    for side in ("value", "key"):
        formats.add_argument(
            f"--{side}-format",
            action="append",
            default=[],
            metavar="FORMAT",
            help="auto (the default: told from a sample), bytes, text, json, avro, protobuf, int, long, double",
        )
        formats.add_argument(
            f"--{side}-schema",
            action="append",
            default=[],
            metavar="FILE",
            help="JSON Schema or Spark's DDL for json, an Avro schema, a .proto file",
        )
        formats.add_argument(
            f"--{side}-message", action="append", default=[], metavar="NAME", help="protobuf: which message of the file"
        )
    add_client(parser, formats=("text", "json", "csv"))
    parser.set_defaults(handler=answer)


def answer(args: argparse.Namespace) -> None:
    _check_installed(args.engine)
    check_reachable(args.bootstrap_server)
    from penstock.base.errors import KafkaError
    from penstock.schemas.errors import SchemaError
    from penstock.sql.errors import SqlError

    try:
        _answer(args)
    except SqlError as error:
        raise Failure(str(error), error.hint) from error
    except (KafkaError, SchemaError) as error:
        raise Failure(str(error)) from error


def _answer(args: argparse.Namespace) -> None:
    from penstock.cli.sql_rows import printer

    clock = _Clock()
    asked = _question(args)
    if args.explain:
        _explain(args, asked.plan())
        return
    found: Answer = asked.follow() if args.stream else asked.answer()
    printed = printer(args.format, found.schema, at_once=args.stream)
    try:
        printed.rows(clock.watched(found.batches))
    finally:
        if args.time:
            note(clock.told())


def _explain(args: argparse.Namespace, plan: Plan) -> None:
    from penstock.sql.asking import explained, facts

    emit(args, facts(plan, args.engine), lambda: print(explained(plan, args.engine)))


class _Clock:
    """When the first row came, and the last."""

    def __init__(self) -> None:
        self.began_s = time.monotonic()
        self.first_s: float | None = None
        self.rows = 0

    def watched(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not batch.num_rows and reader_is_gone():
                raise BrokenPipeError
            if self.first_s is None and batch.num_rows:
                self.first_s = time.monotonic() - self.began_s
            self.rows += batch.num_rows
            yield batch

    def told(self) -> str:
        all_s = time.monotonic() - self.began_s
        first = f"the first after {self.first_s:.3f} s, " if self.first_s is not None else ""
        return f"{self.rows} rows, {first}all after {all_s:.3f} s"


def _question(args: argparse.Namespace) -> Question:
    from penstock.sql.asking import question

    return question(
        args.bootstrap_server,
        _text(args.query),
        engine=args.engine,
        value_format=_by_topic(args.value_format),
        key_format=_by_topic(args.key_format),
        value_schema=_read(_by_topic(args.value_schema)),
        key_schema=_read(_by_topic(args.key_schema)),
        value_message=_by_topic(args.value_message),
        key_message=_by_topic(args.key_message),
        isolation="read_uncommitted" if args.uncommitted else "read_committed",
        config=client_config(args),
        spark=_spark(args),
    )


def _text(query: str) -> str:
    if query != "-":
        return query
    import sys

    return sys.stdin.read()


def _spark(args: argparse.Namespace) -> Any:
    """None: the engine makes its own. Spark's own log lines are noise here: what matters comes as an error."""
    if args.engine != "spark":
        if args.master:
            raise Usage("--master is Spark's", "add --engine spark")
        return None
    import logging

    from penstock.pipeline import session

    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    return session("penstock sql", master=args.master)


def _by_topic(texts: list[str]) -> dict[str, str]:
    """FORMAT for all topics (under the empty name), TOPIC=FORMAT for one."""
    found: dict[str, str] = {}
    for text in texts:
        topic, equals, choice = text.rpartition("=")
        found[topic if equals else ""] = choice
    return found


def _read(files: dict[str, str]) -> dict[str, str]:
    return {topic: Path(name).read_text() for topic, name in files.items()}


def _check_installed(engine: str) -> None:
    from importlib.util import find_spec

    needed = [*NEEDED, "pyspark"] if engine == "spark" else NEEDED
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        extras = "spark,sql" if engine == "spark" else "sql"
        raise Failure(
            f"penstock sql needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed",
            f"pip install 'penstock[{extras}]'",
        )
