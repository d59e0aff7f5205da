"""A directory of Parquet files with a log: whoever reads Parquet reads it, and who reads the log reads it whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from penstock.pipeline.lake import merging
from penstock.pipeline.lake.errors import LakeError
from penstock.pipeline.lake.evolution import merged
from penstock.pipeline.lake.files import DataFile, Files, Target
from penstock.pipeline.lake.layout import PARTITION_COLUMNS
from penstock.pipeline.lake.parquet_log import DIRECTORY, Change, ParquetLog, State, holds
from penstock.pipeline.lake.tables import Compacted, TableOptions, Where, check_partitioning

STAGING = "_staging"
STAGED = ".staged"
COMPACTION = "compact"
"""in place of a query; the version that it began from is in place of its batch."""
COMPACTING = f"{DIRECTORY}/{COMPACTION}.pending"
"""one compaction at a time is under way."""


class ParquetTable:
    def __init__(self, options: TableOptions) -> None:
        self._place = options.place
        self._file_bytes = options.file_bytes
        self._log = ParquetLog(options.place)

    @property
    def exists(self) -> bool:
        return self._log.state() is not None

    @property
    def schema(self) -> pa.Schema:
        state = self._state()
        columns = PARTITION_COLUMNS[state.by]
        return pa.schema([*state.schema, *(pa.field(name, kind) for name, kind in columns.items())])

    def prepare(self, rows: pa.Schema, by: str) -> pa.Schema:
        state = self._log.state()
        if state is None:
            self._check_empty()
            self._place.check_put_new()
            self._log.create(rows, by)
            state = self._state()
        check_partitioning(self._place, list(PARTITION_COLUMNS[state.by]), by)
        change = merged(state.schema, rows, self._place.location)
        if change.added:
            self._log.append(Change(schema=pa.schema([*state.schema, *change.added])))
        return change.files

    def target(self, query: str, batch: int, schema: pa.Schema, by: str) -> Target:
        return Target(self._place, schema, by, _staging(query, batch), STAGED, self._file_bytes)

    def settle(self, query: str, batch: int) -> bool:
        self._settle(COMPACTING)
        self._settle(_pending(query, batch))
        return holds(self._state(), query, batch)

    def commit(self, query: str, batch: int, files: Sequence[DataFile]) -> None:
        if not holds(self._state(), query, batch):
            self._intend(_pending(query, batch), _staging(query, batch), files, (), (query, batch))
        self._settle(_pending(query, batch))

    def tidy(self, query: str, batch: int, files: Sequence[DataFile]) -> None:
        """Staging goes with its batch. What tasks of a driver that was killed have written since goes now."""
        self._place.remove_directory(f"{STAGING}/{query}")

    def files(self) -> list[str]:
        return [self._place.uri_of(path) for path in sorted(self._state().files)]

    def read(self, columns: Sequence[str], where: Where | None = None) -> Iterator[pa.RecordBatch]:
        state = self._state()
        if state.files:
            chosen = None if where is None else where.expression
            yield from self._dataset(state).to_batches(columns=list(columns), filter=chosen)

    def compact(self) -> Compacted:
        self._settle(COMPACTING)
        state = self._state()
        groups = merging.groups(state.files.values(), self._file_bytes)
        if not groups:
            return Compacted()
        staging = _staging(COMPACTION, state.version)
        target = Target(self._place, state.schema, state.by, staging, STAGED, self._file_bytes * 2)
        written: list[DataFile] = []
        for number, group in enumerate(groups):
            files = Files(target, f"merged-{state.version:08d}-{number:04d}")
            for batch in merging.in_order(self._rows(state, group)):
                files.write(batch)
            written += files.close()
        old = [file.path for group in groups for file in group]
        self._intend(COMPACTING, staging, written, old, (COMPACTION, state.version))
        self._settle(COMPACTING)
        return Compacted(len(old), len(written))

    def _intend(
        self, pending: str, staging: str, files: Sequence[DataFile], remove: Sequence[str], who: tuple[str, int]
    ) -> None:
        """From here on these files are the batch, unless others are already."""
        moved = [replace(file, path=_final(file.path, staging)) for file in files]
        told = {
            "change": Change(moved, remove, *who).to_json(),
            "moves": [(file.path, after.path) for file, after in zip(files, moved, strict=True)],
            "staging": staging,
        }
        self._place.put_new(pending, json.dumps(told).encode())

    def _settle(self, pending: str) -> None:
        """Do what is pending, all of which may have been done already.

        Where the log holds the batch nothing is moved: either it was, or these are the files of a second driver, which
        found no pending file because the first had done with its own."""
        found = self._place.read_if_there(pending)
        if found is None:
            return
        told: dict[str, Any] = json.loads(found)
        change = Change.from_json(told["change"])
        state = self._state()
        done = holds(state, change.query, change.batch)
        if not done and all(path in state.files for path in change.remove):
            for staged, final in told["moves"]:
                self._place.move(staged, final)
            self._place.sync_names(final for _, final in told["moves"])
            self._log.append(change)
            done = True
        for gone in change.remove if done else ():
            self._place.remove(gone)
        # Before the pending file goes: nobody else would remove them.
        self._place.sync_names(change.remove if done else ())
        self._place.remove_directory(told["staging"])
        self._place.remove(pending)

    def _state(self) -> State:
        state = self._log.state()
        if state is None:
            raise LakeError(f"there is no table at {self._place.location}: load into it first")
        return state

    def _dataset(self, state: State) -> Any:
        columns = pa.schema(list(PARTITION_COLUMNS[state.by].items()))
        return ds.dataset(
            [self._place.path(path) for path in sorted(state.files)],
            schema=self.schema,
            filesystem=self._place.filesystem,
            format="parquet",
            partitioning=ds.partitioning(columns, flavor="hive") if columns.names else None,
            partition_base_dir=self._place.path(""),
        )

    def _rows(self, state: State, files: Sequence[DataFile]) -> pa.Table:
        """Without the columns of the partition, which files do not have."""
        paths = [self._place.path(file.path) for file in files]
        return ds.dataset(paths, schema=state.schema, filesystem=self._place.filesystem, format="parquet").to_table()

    def _check_empty(self) -> None:
        strangers = [name for name in self._place.names("") if name.endswith(".parquet")]
        if strangers:
            raise LakeError(
                f"{self._place.location} holds {strangers[0]}, which no load has written: load into another directory"
            )


def _pending(query: str, batch: int) -> str:
    return f"{DIRECTORY}/{query}-{batch}.pending"


def _staging(query: str, batch: int) -> str:
    return f"{STAGING}/{query}/{batch}/"


def _final(staged: str, staging: str) -> str:
    return staged.removeprefix(staging).removesuffix(STAGED) + ".parquet"
