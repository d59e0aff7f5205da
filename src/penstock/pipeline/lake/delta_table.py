"""A Delta table: delta-rs commits what the tasks have written, with the batch as the application's transaction."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, Field, Schema
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction, CommitProperties, RemoveAction, Transaction

from penstock.pipeline.lake.errors import LakeError, TableChanged
from penstock.pipeline.lake.evolution import merged, plain_schema
from penstock.pipeline.lake.files import DataFile, Target, stem_of
from penstock.pipeline.lake.layout import PARTITION_COLUMNS
from penstock.pipeline.lake.place import LOCAL
from penstock.pipeline.lake.tables import Compacted, TableOptions, Where, check_partitioning

LOG = "_delta_log"
ATTEMPTS = 5
"""at a commit, each after a look at what others have committed."""


class DeltaLakeTable:
    def __init__(self, options: TableOptions) -> None:
        self._place = options.place
        self._file_bytes = options.file_bytes
        self._storage = options.place.delta_storage
        _check_safe({**os.environ, **self._storage})

    @property
    def exists(self) -> bool:
        return DeltaTable.is_deltatable(self._place.location, self._storage)

    @property
    def schema(self) -> pa.Schema:
        return plain_schema(pa.schema(self._open().schema()))

    def prepare(self, rows: pa.Schema, by: str) -> pa.Schema:
        columns = PARTITION_COLUMNS[by]
        if not self.exists:
            self._place.make_directory()
            self._place.check_put_new()
            whole = pa.schema([*rows, *(pa.field(name, kind) for name, kind in columns.items())])
            DeltaTable.create(
                self._place.location,
                schema=Schema.from_arrow(whole),
                partition_by=list(columns),
                mode="ignore",
                storage_options=self._storage,
            )
        table = self._open()
        check_partitioning(self._place, table.metadata().partition_columns, by)
        change = merged(self.schema, rows, self._place.location)
        if change.added:
            table.alter.add_columns([Field.from_arrow(field) for field in change.added])
        self._sync_log(0)
        return change.files

    def target(self, query: str, batch: int, schema: pa.Schema, by: str) -> Target:
        return Target(self._place, schema, by, file_bytes=self._file_bytes)

    def settle(self, query: str, batch: int) -> bool:
        return _holds(self._open(), query, batch)

    def commit(self, query: str, batch: int, files: Sequence[DataFile]) -> None:
        actions: list[AddAction | RemoveAction] = [self._added(file) for file in files]
        properties = CommitProperties(
            custom_metadata={"penstock.query": query, "penstock.batch": batch},
            app_transactions=[Transaction(query, batch)],
        )
        for attempt in range(ATTEMPTS):
            table = self._open()
            before = table.version()
            if _holds(table, query, batch):
                return
            try:
                table.create_write_transaction(
                    actions, "append", table.schema(), table.metadata().partition_columns, commit_properties=properties
                )
                self._sync_log(before + 1)
                return
            except CommitFailedError:
                # Somebody has committed since we looked: this very batch, or something else.
                if attempt + 1 == ATTEMPTS:
                    raise

    def tidy(self, query: str, batch: int, files: Sequence[DataFile]) -> None:
        self._place.remove_strays({file.path for file in files}, stem_of(query, batch))

    def files(self) -> list[str]:
        return [_as_uri(path) for path in sorted(self._open().file_uris())]

    def read(self, columns: Sequence[str], where: Where | None = None) -> Iterator[pa.RecordBatch]:
        dataset = self._open().to_pyarrow_dataset()
        yield from dataset.to_batches(columns=list(columns), filter=None if where is None else where.expression)

    def compact(self) -> Compacted:
        """By delta-rs. The files of before stay until they are vacuumed: versions of before can be read."""
        table = self._open()
        before = set(self.files())
        try:
            told = table.optimize.compact(target_size=self._file_bytes)
        except CommitFailedError as error:
            raise TableChanged(
                f"{self._place.location} was changed while it was compacted: try again ({error})"
            ) from None
        self._place.sync([uri.removeprefix(f"{self._place.uri}/") for uri in self.files() if uri not in before])
        self._sync_log(table.version())
        return Compacted(told["numFilesRemoved"], told["numFilesAdded"])

    def _open(self) -> DeltaTable:
        try:
            return DeltaTable(self._place.location, storage_options=self._storage)
        except TableNotFoundError:
            raise LakeError(f"there is no Delta table at {self._place.location}: load into it first") from None

    def _sync_log(self, version: int) -> None:
        """From that version on. delta-rs leaves it to the system when what it has written is on the disk."""
        if self._place.is_local:
            first = f"{version:020d}"
            self._place.sync([f"{LOG}/{name}" for name in self._place.names(LOG) if name >= first])

    def _added(self, file: DataFile) -> AddAction:
        _, time_ms = self._place.size_and_time_ms(file.path)
        return AddAction(file.path, file.size_bytes, dict(file.partition), time_ms, True, file.statistics)


def _check_safe(settings: Mapping[str, str]) -> None:
    """delta-rs writes a commit only where there is none, unless it is told otherwise: then it would overwrite some."""
    for name, value in settings.items():
        short = name.lower().removeprefix("aws_")
        if (short, value.lower()) in (("s3_allow_unsafe_rename", "true"), ("conditional_put", "disabled")):
            raise LakeError(f"with {name}={value} two commits could overwrite each other: a load does without it")


def _holds(table: DeltaTable, query: str, batch: int) -> bool:
    last = table.transaction_version(query)
    return last is not None and last >= batch


def _as_uri(path: str) -> str:
    """delta-rs names files of a disk by their path, with what a URI would have escaped."""
    return path if "://" in path else LOCAL + unquote(path)
