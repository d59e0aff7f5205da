"""What the driver does: a stream of records, each batch of which becomes files of a table and one commit."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import IllegalArgumentException, PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.client import Admin
from penstock.client.errors import TopicExists
from penstock.pipeline.lake.dead_letters import DeadLetters
from penstock.pipeline.lake.durable import sync_checkpoint
from penstock.pipeline.lake.errors import LakeError, TableChanged
from penstock.pipeline.lake.files import FILE_BYTES, DataFile, TaskWriter, stem_of
from penstock.pipeline.lake.layout import PARTITION_COLUMNS, Layout
from penstock.pipeline.lake.place import Place
from penstock.pipeline.lake.tables import Compacted, Table, open_table, reached
from penstock.pipeline.source import loss
from penstock.pipeline.spark import session
from penstock.pipeline.stopping import stop_after_batch
from penstock.pipeline.telling import told_in
from penstock.wire.offsets import EARLIEST, LATEST

QUERY_PROPERTY = "sql.streaming.queryId"
CHECKPOINT = "_penstock_checkpoint"
OFFSETS_PER_TRIGGER = 2_000_000
CONNECT_PACKAGE = "pyspark.sql.connect"
"""Imported, it would need packages that only its users have."""
NO_CONNECT = (
    "a load does not run over Spark Connect, which does not tell a batch the query that it belongs to: run it with a "
    "master, such as local[*] or spark://HOST:PORT; pipelines, reads and writes run over Spark Connect"
)
COMPACT_EVERY = 100
"""batches, while a load with `compact` runs."""
STARTING = ("startingoffsets", "startingtimestamp", "startingoffsetsbytimestamp")
LOST = ("fail", "skip")


@dataclass
class Totals:
    """What a load has done since it was started."""

    rows: int = 0
    files: int = 0
    batches: int = 0
    batch: int | None = None
    """the last one that is in the table."""


class Load:
    """A load that runs. `wait` until it ends, `stop` after the batch that is under way."""

    def __init__(self, query: StreamingQuery, batches: Batches, table: Table) -> None:
        self.query = query
        self.table = table
        self._batches = batches

    @property
    def totals(self) -> Totals:
        return self._batches.totals

    def wait(self, timeout_s: float | None = None) -> bool:
        """True where it has ended. Raises what ended it, as a LakeError where that says it better than Spark."""
        try:
            ended = self.query.awaitTermination(timeout_s)  # type: ignore[arg-type]  # takes floats
        except StreamingQueryException as error:
            raise self._explained(error) from None
        return ended is not False

    def stop(self, timeout_s: float = 60.0) -> None:
        """Let the batch that is under way end, then stop. After the time-out it is broken off: it is repeated at the
        next start."""
        stop_after_batch(self.query, self.wait, timeout_s)

    def _explained(self, error: StreamingQueryException) -> Exception:
        own = self._batches.failure
        return own if isinstance(own, LakeError) else explained(error, f"{own or ''}\n{error}")


def explained(error: PySparkException, text: str) -> Exception:
    """What Spark tells of an error of ours, as that error."""
    told = told_in(text)
    if told is None:
        return error
    return LakeError(told.replace(f"{loss.NEXT_STEP}.", "lost=skip loads what is left; the gap stays in the table"))


def load(
    topics: str | Sequence[str],
    to: str,
    *,
    bootstrap: str,
    kind: str = "parquet",
    by: str = "day",
    once: bool = False,
    options: Mapping[str, str] | None = None,
    time_field: str | None = None,
    headers: bool = False,
    raw: bool = False,
    errors: str = "fail",
    lost: str = "fail",
    dead_letters: str | None = None,
    compact: bool = False,
    checkpoint: str | None = None,
    interval: str | None = None,
    file_bytes: int = FILE_BYTES,
    storage: Mapping[str, str] | None = None,
    catalog: Mapping[str, str] | None = None,
    table: str | None = None,
    kafka: Mapping[str, str] | None = None,
    spark: SparkSession | Callable[[], SparkSession] | None = None,
) -> Load:
    """Start loading topics into the table at `to`, a directory or a URI; the table is made if it is not there.

    `options` are the source's: valueFormat, valueSchema, startingOffsets, maxOffsetsPerTrigger ... With `once` it ends
    when it has loaded what the topics hold now. Where records were deleted before they were loaded, `lost` is "fail",
    or "skip" to load what is left. `checkpoint` is a directory beside the table's files where that is a local disk.
    `catalog` and `table` are for Iceberg, `storage` for object stores, `kafka` for the clients.
    `spark` may be what starts it: it is called when all else is found to be well.
    """
    if spark is not None and type(spark).__module__.startswith(CONNECT_PACKAGE):
        raise LakeError(NO_CONNECT)
    if by not in PARTITION_COLUMNS:
        raise LakeError(f"a table is partitioned by one of {', '.join(PARTITION_COLUMNS)}, not {by!r}")
    if once and interval is not None:
        raise LakeError("once loads what is there and ends, interval goes on: leave one of them out")
    if lost not in LOST:
        raise LakeError(f"lost is one of {', '.join(LOST)}, not {lost!r}")
    names = [topics] if isinstance(topics, str) else list(topics)
    given = dict(options or {})
    chosen = "dead-letters" if dead_letters is not None else errors
    layout = Layout.of(
        {**given, "subscribe": ",".join(names)}, errors=chosen, time_field=time_field, headers=headers, raw=raw
    )
    found = open_table(to, kind, storage=storage, catalog=catalog, name=table, file_bytes=file_bytes)
    where = checkpoint or _checkpoint(to)
    partitions = _partitions(names, bootstrap, kafka or {}, dead_letters)
    schema = found.prepare(layout.schema, by)
    letters = None if dead_letters is None else DeadLetters(bootstrap, dead_letters, kafka or {})
    batches = Batches(found, layout, schema, by, letters, compact, where)
    source = _source_options(given, names, bootstrap, kafka or {}, layout, lost)
    if _is_new(where):
        source = _begun(source, found, partitions)
    chosen_spark = spark() if callable(spark) else spark or session("penstock-load")
    try:
        frame = chosen_spark.readStream.format("penstock").options(**source).load()
        writer = frame.writeStream.foreachBatch(batches).option("checkpointLocation", where)
        if once:
            writer = writer.trigger(availableNow=True)
        elif interval is not None:
            writer = writer.trigger(processingTime=interval)
        return Load(writer.start(), batches, found)
    except IllegalArgumentException as error:
        raise LakeError(f"Spark does not start the load: {str(error).splitlines()[0]}") from None
    except PySparkException as error:
        raise explained(error, str(error)) from None


def compact(table: Table) -> Compacted:
    """Small files of a table become larger ones; its rows stay what they are."""
    return table.compact()


class Batches:
    """For foreachBatch: see the package's docstring for what happens when it is broken off anywhere."""

    def __init__(
        self,
        table: Table,
        layout: Layout,
        schema: Any,
        by: str,
        letters: DeadLetters | None,
        compact: bool,
        checkpoint: str,
    ) -> None:
        self._table = table
        self._layout = layout
        self._schema = schema
        self._by = by
        self._letters = letters
        self._compact = compact
        self._checkpoint = Place.of(checkpoint)
        self.totals = Totals()
        self.failure: Exception | None = None

    def __call__(self, frame: DataFrame, batch: int) -> None:
        try:
            self._load(frame, query_of(frame), batch)
        except Exception as error:
            # Spark tells it as text, through two languages; who waits for the load gets this one.
            self.failure = error
            raise

    def _load(self, frame: DataFrame, query: str, batch: int) -> None:
        if not self._table.settle(query, batch):
            files = self._write(frame, query, batch)
            if files:
                if self._checkpoint.is_local:
                    sync_checkpoint(self._checkpoint.location, batch)
                self._table.commit(query, batch, files)
            if self.totals.batches == 0:
                # Only the first batch after a start can have been tried before.
                self._table.tidy(query, batch, files)
            self.totals.rows += sum(file.rows for file in files)
            self.totals.files += len(files)
        self.totals.batches += 1
        self.totals.batch = batch
        if self._compact and self.totals.batches % COMPACT_EVERY == 0:
            with contextlib.suppress(TableChanged):  # the next time will do
                self._table.compact()

    def _write(self, frame: DataFrame, query: str, batch: int) -> list[DataFile]:
        target = self._table.target(query, batch, self._schema, self._by)
        task = TaskWriter(target, self._layout, stem_of(query, batch), self._letters)
        written = frame.mapInArrow(task, "file string").collect()
        return [DataFile.from_json(row["file"]) for row in written]


def query_of(frame: DataFrame) -> str:
    """The id of the query that this batch belongs to, which is the checkpoint's."""
    query = frame.sparkSession.sparkContext.getLocalProperty(QUERY_PROPERTY)
    if query is None:
        raise LakeError(f"Spark does not say which query this batch belongs to ({QUERY_PROPERTY}): it cannot be loaded")
    return str(query)


def _checkpoint(to: str) -> str:
    if "://" in to and not to.startswith("file:"):
        raise LakeError(
            f"a load into {to} needs a checkpoint: name a directory of this machine (if it gets lost, the next load "
            "begins where the table ends)"
        )
    return os.path.join(Place.of(to).location, CHECKPOINT)


def _is_new(checkpoint: str) -> bool:
    """Where nobody can tell, it may be: then Spark ignores where it should begin."""
    offsets = Path(checkpoint, "offsets")
    return not (offsets.is_dir() and any(name.isdigit() for name in os.listdir(offsets)))


def _partitions(
    topics: Sequence[str], bootstrap: str, kafka: Mapping[str, str], dead_letters: str | None
) -> dict[str, list[int]]:
    """Of the topics that are read, which must be there; the one of dead letters is made."""
    with Admin(bootstrap, config=dict(kafka)) as admin:
        found = {one.name: [part.partition for part in one.partitions] for one in admin.describe_topics(topics)}
        if dead_letters is not None and dead_letters not in {one.name for one in admin.topics()}:
            try:
                admin.create_topic(dead_letters)
            except TopicExists:
                return found
    return found


def _source_options(
    given: Mapping[str, str], topics: Sequence[str], bootstrap: str, kafka: Mapping[str, str], layout: Layout, lost: str
) -> dict[str, str]:
    """Without the formats: the tasks that write decode, as they want the bytes too."""
    formats = ("format", "schema", "subject", "messagename")
    rest = {name: value for name, value in given.items() if not name.lower().endswith(formats)}
    rest = {name: value for name, value in rest.items() if not name.lower().startswith("schema.registry.")}
    return {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": ",".join(topics),
        "columns": layout.source_columns,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(OFFSETS_PER_TRIGGER),
        "kafka.isolation.level": "read_committed",
        "failOnDataLoss": str(lost == "fail").lower(),
        **{f"kafka.{name}": value for name, value in kafka.items()},
        **rest,
    }


def _begun(source: Mapping[str, str], table: Table, partitions: Mapping[str, Sequence[int]]) -> dict[str, str]:
    """A new query on a table that has rows begins behind them, whatever it was told. Partitions of which the table has
    none are read from the first record on, or from the end where that was asked for."""
    done = reached(table)
    if not any(topic in done for topic in partitions):
        return dict(source)
    other = LATEST if source.get("startingOffsets") == "latest" else EARLIEST
    offsets = {
        topic: {str(one): done.get(topic, {}).get(one, other) for one in ones} for topic, ones in partitions.items()
    }
    rest = {name: value for name, value in source.items() if name.lower() not in STARTING}
    return {**rest, "startingOffsets": json.dumps(offsets)}
