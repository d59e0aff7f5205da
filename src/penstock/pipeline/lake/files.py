"""What a task does: its records become rows, its rows Parquet files, a file or more for each day or hour.

Memory is bounded: rows are gathered into row groups of `GROUP_ROWS`, over all open files no more than `GATHERED_BYTES`,
and no more than `OPEN_FILES` are open.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext

from penstock.pipeline.lake.dead_letters import DeadLetters
from penstock.pipeline.lake.layout import Layout, buckets, directory_of
from penstock.pipeline.lake.place import Place
from penstock.pipeline.lake.statistics import statistics_of

GROUP_ROWS = 131_072
GATHERED_BYTES = 67_108_864
OPEN_FILES = 32
FILE_BYTES = 134_217_728
RUN_PROPERTY = "spark.jobGroup.id"


@dataclass(frozen=True)
class DataFile:
    """A Parquet file that was written: what a commit has to know of it."""

    path: str
    """relative to the table."""
    rows: int
    size_bytes: int
    partition: Mapping[str, str] = field(default_factory=dict)
    statistics: str = "{}"
    """smallest and largest values and counts of nulls, as Delta's log has them."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> DataFile:
        return cls(**json.loads(text))


@dataclass(frozen=True)
class Target:
    """Where files go, and what they look like."""

    place: Place
    schema: pa.Schema
    by: str
    prefix: str = ""
    """of every path: a directory, with its slash."""
    suffix: str = ".parquet"
    file_bytes: int = FILE_BYTES


class Files:
    """Files of one task. `write` rows, then `close`, which gives what was written, and will be there for good."""

    def __init__(self, target: Target, name: str) -> None:
        self._target = target
        self._name = name
        self._open: dict[str, _File] = {}
        self._count = 0
        self._done: list[DataFile] = []

    def write(self, rows: pa.RecordBatch) -> None:
        for values, part in buckets(rows, self._target.by):
            directory = directory_of(values)
            file = self._open.pop(directory, None) or self._new(directory, values)
            self._open[directory] = file
            file.gather(part)
            if file.size_bytes >= self._target.file_bytes:
                self._finish(directory)
        while len(self._open) > OPEN_FILES:
            self._finish(next(iter(self._open)))
        while sum(file.gathered_bytes for file in self._open.values()) > GATHERED_BYTES:
            max(self._open.values(), key=lambda file: file.gathered_bytes).flush()

    def close(self) -> list[DataFile]:
        for directory in list(self._open):
            self._finish(directory)
        self._target.place.sync([file.path for file in self._done])
        return self._done

    def abandon(self) -> None:
        """After a failure: files that are still open are removed, as nobody will ask for them."""
        for file in self._open.values():
            with contextlib.suppress(Exception):
                file.abandon()

    def _new(self, directory: str, values: Mapping[str, str]) -> _File:
        name = f"{self._name}-{self._count:04d}{self._target.suffix}"
        self._count += 1
        path = f"{directory}/{name}" if directory else name
        return _File(self._target, self._target.prefix + path, values)

    def _finish(self, directory: str) -> None:
        self._done.append(self._open.pop(directory).close())


class _File:
    def __init__(self, target: Target, path: str, values: Mapping[str, str]) -> None:
        self._target = target
        self._path = path
        self._values = values
        self._stream = target.place.open_new(path)
        self._writer = pq.ParquetWriter(self._stream, target.schema, compression="zstd", version="2.6")
        self._gathered: list[pa.RecordBatch] = []
        self.gathered_bytes = 0

    @property
    def size_bytes(self) -> int:
        return int(self._stream.tell()) + self.gathered_bytes // 4

    def gather(self, rows: pa.RecordBatch) -> None:
        self._gathered.append(_cast(rows, self._target.schema))
        self.gathered_bytes += rows.nbytes
        if sum(batch.num_rows for batch in self._gathered) >= GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        """What is gathered becomes a row group."""
        if self._gathered:
            self._writer.write_table(pa.Table.from_batches(self._gathered).combine_chunks())
        self._gathered, self.gathered_bytes = [], 0

    def close(self) -> DataFile:
        self.flush()
        self._writer.close()
        self._stream.close()
        about = self._writer.writer.metadata
        size, _ = self._target.place.size_and_time_ms(self._path)
        statistics = statistics_of(about, self._target.schema)
        return DataFile(self._path, about.num_rows, size, dict(self._values), statistics)

    def abandon(self) -> None:
        self._writer.close()
        self._stream.close()
        self._target.place.remove(self._path)


def _cast(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return rows if rows.schema.equals(schema) else rows.select(schema.names).cast(schema)


@dataclass(frozen=True)
class TaskWriter:
    """For `mapInArrow`: takes a task's records, writes its files, and yields a row for each."""

    target: Target
    layout: Layout
    stem: str
    """how names of this batch's files begin."""
    dead_letters: DeadLetters | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = Files(self.target, f"{self.stem}{attempt_name()}")
        dead = None if self.dead_letters is None else self.dead_letters.open()
        try:
            for batch in batches:
                rows, letters = self.layout.rows(batch)
                if rows.num_rows:
                    files.write(rows)
                if dead is not None and letters is not None:
                    dead.write(letters)
            if dead is not None:
                dead.close()
            done = files.close()
        except BaseException:
            files.abandon()
            raise
        yield pa.record_batch({"file": pa.array([file.to_json() for file in done], pa.string())})


def stem_of(query: str, batch: int) -> str:
    return f"part-{query[:8]}-{batch:08d}-"


def attempt_name() -> str:
    """Of this attempt at this task: no other has it, not even after a restart."""
    context = TaskContext.get()
    assert context is not None, "rows are written by Spark's tasks"
    run = (context.getLocalProperty(RUN_PROPERTY) or "")[:8]
    return f"{context.partitionId():05d}-{run}-{context.taskAttemptId():x}"
