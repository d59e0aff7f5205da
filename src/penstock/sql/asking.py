"""A question and its answer: what `penstock.sql.query` and the command do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from typing import Any

import pyarrow as pa
from sqlglot import exp

from penstock.sql import binding, duckdb_engine
from penstock.sql.catalog import Brokers, Catalog, Isolation
from penstock.sql.dialect import duckdb_sql
from penstock.sql.errors import SqlError, did_you_mean
from penstock.sql.formats import EVERY, Side, check_topics, table_of
from penstock.sql.moment import fix_now
from penstock.sql.planning import Plan, scans_of
from penstock.sql.results import first_rows
from penstock.sql.statement import DescribeTable, Query, ShowTables, parse
from penstock.sql.tables import TopicTable

ENGINES = ("duckdb", "spark")
Choice = str | Mapping[str, str] | None
"""for all topics, or by topic"""


@dataclass(frozen=True)
class Answer:
    """The columns, known at once, and the rows as they come."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]

    def table(self) -> pa.Table:
        return pa.Table.from_batches(self.batches, self.schema)


@dataclass(frozen=True)
class Question:
    """A query's text and what is known beside it."""

    text: str
    brokers: Brokers
    engine: str = "duckdb"
    key: Side = field(default_factory=Side)
    value: Side = field(default_factory=Side)
    spark: Any = None
    """a SparkSession; one is made where it is needed and not given"""

    def answer(self) -> Answer:
        """Everything that can be wrong with the question is found before this returns."""
        _check_engine(self.engine)
        statement = parse(self.text)
        with Catalog(self.brokers) as catalog:
            if isinstance(statement, Query):
                plan = self._planned(statement, catalog)
            else:
                return _told(statement, catalog, self)
        return Answer(plan.schema, self._run(plan))

    def follow(self) -> Answer:
        """A continuous result: history first, then what arrives, until the caller has enough. While nothing does, a
        batch without rows comes now and then."""
        _check_engine(self.engine)
        statement = parse(self.text)
        if not isinstance(statement, Query):
            raise SqlError("this is answered once, not continuously", "leave out --stream")
        ended = [ref.topic for ref in statement.refs if ref.as_of is not None]
        if ended:
            raise SqlError(f"AS OF ends {ended[0]}, and a continuous result has no end", "leave out one of them")
        count = _taken_limit(statement.tree)
        fix_now(statement.tree, datetime.now(UTC))
        with Catalog(self.brokers) as catalog:
            plan = self._planned(statement, catalog)
        batches = self._run_continuously(plan)
        return Answer(plan.schema, batches if count is None else first_rows(batches, count))

    def plan(self) -> Plan:
        statement = parse(self.text)
        if not isinstance(statement, Query):
            raise SqlError("there is nothing to plan: this asks about topics, not for their rows")
        with Catalog(self.brokers) as catalog:
            return self._planned(statement, catalog)

    def _planned(self, query: Query, catalog: Catalog) -> Plan:
        check_topics(catalog, self.key, self.value)
        tables = {
            topic: table_of(catalog, topic, self.key, self.value) for topic in {ref.topic: 0 for ref in query.refs}
        }
        connection = binding.connect()
        try:
            schema = binding.bind(connection, query, [tables[ref.topic] for ref in query.refs])
            scans = scans_of(query, tables, catalog, partial(binding.time_ms_of, connection))
        finally:
            connection.close()
        return Plan(query, tuple(scans), schema, self.brokers)

    def _run(self, plan: Plan) -> Iterator[pa.RecordBatch]:
        if self.engine == "duckdb":
            return duckdb_engine.run(plan)
        from penstock.sql import spark_engine  # noqa: PLC0415 only those who ask for Spark pay for its import

        return spark_engine.run(plan, self.spark)

    def _run_continuously(self, plan: Plan) -> Iterator[pa.RecordBatch]:
        if self.engine == "duckdb":
            from penstock.sql import continuous  # noqa: PLC0415 few need it

            return continuous.run(plan)
        from penstock.sql import spark_stream  # noqa: PLC0415 see above

        return spark_stream.run(plan, self.spark)


def query(bootstrap: str, text: str, **choices: Any) -> pa.Table:
    """The answer to a query, whole.

    `engine` is "duckdb" or "spark" (in the session `spark`, or one that is made). `value_format` and `key_format` name
    a format for all topics, or one by topic; `value_schema` and `key_schema` the texts of schemas, `value_message` and
    `key_message` messages of Protobuf, likewise. `isolation` is read_committed or read_uncommitted; `config` Kafka's
    own consumer settings.
    """
    return question(bootstrap, text, **choices).answer().table()


def stream(bootstrap: str, text: str, **choices: Any) -> Iterator[pa.RecordBatch]:
    """A continuous result: rows as they come, or, where the query groups, groups as they change. Choices as of
    `query`. Close the iterator to end it."""
    batches = question(bootstrap, text, **choices).follow().batches
    return (one for one in batches if one.num_rows)


def explain(bootstrap: str, text: str, **choices: Any) -> str:
    """What would be read of each topic, and the query as the engine gets it. Choices as of `query`."""
    asked = question(bootstrap, text, **choices)
    return explained(asked.plan(), asked.engine)


def question(
    bootstrap: str,
    text: str,
    *,
    engine: str = "duckdb",
    value_format: Choice = None,
    key_format: Choice = None,
    value_schema: Choice = None,
    key_schema: Choice = None,
    value_message: Choice = None,
    key_message: Choice = None,
    isolation: Isolation = "read_committed",
    config: Mapping[str, str] | None = None,
    spark: Any = None,
) -> Question:
    return Question(
        text,
        Brokers(bootstrap, dict(config or {}), isolation),
        engine,
        Side(_by_topic(key_format), _by_topic(key_schema), _by_topic(key_message)),
        Side(_by_topic(value_format), _by_topic(value_schema), _by_topic(value_message)),
        spark,
    )


def explained(plan: Plan, engine: str) -> str:
    known, lines = facts(plan, engine), []
    for one in known["topics"]:
        ranges = one["ranges"]
        lines.append(f"{one['table']}: topic {one['topic']}, {one['offsets']} offsets in {len(ranges)} partitions")
        lines += [f"  partition {of['partition']}: offsets {of['start']} to {of['end'] - 1}" for of in ranges]
        lines.append(f"  columns: {', '.join(one['columns'])}")
        lines.append(f"  of the records: {', '.join(one['of_records'])}")
    return "\n".join([*lines, f"{engine}: {known['sql']}"])


def facts(plan: Plan, engine: str) -> dict[str, Any]:
    """What `explained` tells; ranges end before `end`."""
    topics = [
        {
            "table": ref.view,
            "topic": ref.topic,
            "offsets": scan.offsets,
            "ranges": [asdict(one) for one in scan.ranges],
            "columns": [one.name for one in scan.reading.columns],
            "of_records": scan.reading.sources,
        }
        for ref, scan in zip(plan.query.refs, plan.scans, strict=True)
    ]
    text = duckdb_sql(plan.query.tree) if engine == "duckdb" else plan.spark_sql
    return {"topics": topics, "engine": engine, "sql": text}


def _by_topic(choice: Choice) -> Mapping[str, str]:
    if choice is None:
        return {}
    return {EVERY: choice} if isinstance(choice, str) else dict(choice)


def _check_engine(engine: str) -> None:
    if engine not in ENGINES:
        raise SqlError(f"there is no engine {engine!r}", did_you_mean(engine, ENGINES) or "duckdb or spark")
    if engine == "spark" and find_spec("pyspark") is None:
        raise SqlError("the engine spark needs PySpark, which is not installed", "pip install 'penstock[spark,sql]'")


def _taken_limit(tree: exp.Query) -> int | None:
    """LIMIT ends a continuous result; the batches that it is made of must not each have one."""
    limit = tree.args.get("limit")
    if limit is None:
        return None
    count = limit.expression
    if not isinstance(count, exp.Literal) or not str(count.this).isdigit():
        raise SqlError("LIMIT of a continuous result is a number")
    tree.set("limit", None)
    return int(count.this)


def _told(statement: ShowTables | DescribeTable, catalog: Catalog, asked: Question) -> Answer:
    if isinstance(statement, ShowTables):
        found = _topics(catalog)
    else:
        check_topics(catalog, asked.key, asked.value)
        found = _columns(table_of(catalog, statement.topic, asked.key, asked.value))
    return Answer(found.schema, iter(found.to_batches()))


def _topics(catalog: Catalog) -> pa.Table:
    sizes = catalog.sizes()
    return pa.table(
        {
            "table": pa.array(list(sizes), pa.string()),
            "partitions": pa.array([len(catalog.partitions(name)) for name in sizes], pa.int64()),
            "offsets": pa.array(list(sizes.values()), pa.int64()),
        }
    )


def _columns(table: TopicTable) -> pa.Table:
    connection = binding.connect()
    try:
        schema = pa.schema([pa.field(one.name, one.kind) for one in table.columns])
        types = binding.type_names(connection, schema)
    finally:
        connection.close()
    sources = [one.source if one.member is None else f"{one.source}.{one.member.name}" for one in table.columns]
    formats = {"key": table.key.name, "value": table.value.name}
    return pa.table(
        {
            "column": [one.name for one in table.columns],
            "type": types,
            "of": sources,
            "format": [formats.get(one.source) for one in table.columns],
        }
    )
