"""An Iceberg table: PyIceberg commits what the tasks have written, with the batch in the snapshot and in the table.

The snapshot's properties say which batch it is; the table's properties say the last batch of each query, as snapshots
expire. Both are one commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.io.pyarrow import ArrowScan, parquet_file_to_data_file
from pyiceberg.transforms import DayTransform, HourTransform

from penstock.pipeline.lake import merging
from penstock.pipeline.lake.errors import LakeError, TableChanged
from penstock.pipeline.lake.evolution import merged, plain_schema
from penstock.pipeline.lake.files import DataFile, Files, Target, stem_of
from penstock.pipeline.lake.layout import PARTITION_COLUMNS
from penstock.pipeline.lake.tables import Compacted, TableOptions, Where, check_partitioning

CATALOG_FILE = "catalog.db"
DATA = "data/"
DURABLE_IO = "penstock.pipeline.lake.iceberg_io.DurableFileIO"
ATTEMPTS = 5
"""at a commit, each after a look at what others have committed."""
TRANSFORMS: dict[str, tuple[str, Any]] = {"day": ("event_day", DayTransform()), "hour": ("event_hour", HourTransform())}
PROPERTIES = {
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
BATCHES = "penstock.batch."
"""and a query's id: a property of the table."""


class IcebergTable:
    def __init__(self, options: TableOptions) -> None:
        self._place = options.place
        self._file_bytes = options.file_bytes
        self._name = options.name
        self._catalog = self._open_catalog(options)

    @property
    def exists(self) -> bool:
        return bool(self._catalog.table_exists(self._name))

    @property
    def schema(self) -> pa.Schema:
        return plain_schema(self._open().schema().as_arrow())

    def prepare(self, rows: pa.Schema, by: str) -> pa.Schema:
        if not self.exists:
            self._create(rows, by)
        table = self._open()
        check_partitioning(self._place, _partition_columns(table), by)
        change = merged(self.schema, rows, self._name)
        if change.added:
            with table.update_schema() as update:
                update.union_by_name(pa.schema(change.added))
        return change.files

    def target(self, query: str, batch: int, schema: pa.Schema, by: str) -> Target:
        return Target(self._place, schema, by, DATA, file_bytes=self._file_bytes)

    def settle(self, query: str, batch: int) -> bool:
        return _holds(self._open(), query, batch)

    def commit(self, query: str, batch: int, files: Sequence[DataFile]) -> None:
        properties = {"penstock.query": query, "penstock.batch": str(batch)}
        for attempt in range(ATTEMPTS):
            table = self._open()
            if _holds(table, query, batch):
                return
            try:
                with table.transaction() as change:
                    change.set_properties({BATCHES + query: str(batch)})
                    change.add_files([self._place.uri_of(file.path) for file in files], properties, False)
                return
            except CommitFailedException:
                # Somebody has committed since we looked: this very batch, or something else.
                if attempt + 1 == ATTEMPTS:
                    raise

    def tidy(self, query: str, batch: int, files: Sequence[DataFile]) -> None:
        self._place.remove_strays({file.path for file in files}, stem_of(query, batch))

    def files(self) -> list[str]:
        return sorted(task.file.file_path for task in self._open().scan().plan_files())

    def read(self, columns: Sequence[str], where: Where | None = None) -> Iterator[pa.RecordBatch]:
        chosen: dict[str, Any] = {} if where is None else {"row_filter": _expression(where)}
        reader = self._open().scan(selected_fields=tuple(columns), **chosen).to_arrow_batch_reader()
        for batch in reader:
            yield pa.record_batch([batch.column(name) for name in columns], names=list(columns))

    def compact(self) -> Compacted:
        """Small files become larger ones in one snapshot; those of before can be read until it is expired."""
        table = self._open()
        snapshot = table.current_snapshot()
        tasks = {task.file.file_path: task for task in table.scan().plan_files()}
        groups = merging.groups([_data_file(task.file) for task in tasks.values()], self._file_bytes)
        if snapshot is None or not groups:
            return Compacted()
        schema = self.schema
        target = Target(self._place, schema, _by(table), DATA, file_bytes=self._file_bytes * 2)
        written: list[DataFile] = []
        for number, group in enumerate(groups):
            files = Files(target, f"merged-{snapshot.snapshot_id}-{number:04d}")
            for batch in merging.in_order(_rows(table, [tasks[file.path] for file in group], schema)):
                files.write(batch)
            written += files.close()
        old = [tasks[file.path].file for group in groups for file in group]
        try:
            self._replace(table, old, written)
        except CommitFailedException:
            for file in written:
                self._place.remove(file.path)
            raise TableChanged(f"{self._name} was changed while it was compacted: try again") from None
        return Compacted(len(old), len(written))

    def _replace(self, table: Any, old: Sequence[Any], written: Sequence[DataFile]) -> None:
        with table.transaction() as change, change.update_snapshot({"penstock.compaction": "true"}).overwrite() as swap:
            for file in old:
                swap.delete_data_file(file)
            for new in written:
                uri = self._place.uri_of(new.path)
                swap.append_data_file(parquet_file_to_data_file(table.io, change.table_metadata, uri))

    def _open_catalog(self, options: TableOptions) -> Any:
        given = dict(options.catalog)
        if not given:
            if not self._place.is_local:
                raise LakeError(
                    f"an Iceberg table at {self._place.uri} needs a catalogue: give its properties, for example "
                    "uri=sqlite:////var/lake/catalog.db, or type=rest and uri=https://..."
                )
            self._place.make_directory()
            given = {"type": "sql", "uri": f"sqlite:///{self._place.location}/{CATALOG_FILE}"}
        if self._place.is_local:
            given.setdefault("py-io-impl", DURABLE_IO)
        given.setdefault("warehouse", self._place.uri)
        return load_catalog(given.pop("name", "penstock"), **{**self._place.storage, **given})

    def _create(self, rows: pa.Schema, by: str) -> None:
        namespace = self._name.rpartition(".")[0]
        if not namespace:
            raise LakeError(f"an Iceberg table is named by namespace and name, as lake.orders, not {self._name!r}")
        self._catalog.create_namespace_if_not_exists(namespace)
        try:
            with self._catalog.create_table_transaction(
                self._name, rows, location=self._place.uri, properties=PROPERTIES
            ) as new:
                if by in TRANSFORMS:
                    name, transform = TRANSFORMS[by]
                    with new.update_spec() as spec:
                        spec.add_field("_timestamp", transform, name)
        except TableAlreadyExistsError:
            return

    def _open(self) -> Any:
        try:
            table = self._catalog.load_table(self._name)
        except NoSuchTableError:
            raise LakeError(f"the catalogue has no Iceberg table {self._name}: load into it first") from None
        # PyIceberg would put a refused commit on top of what refused it, and that may be this very batch. Said to this
        # copy of the metadata alone: other writers' retries are none of our business.
        table.metadata.properties["commit.retry.num-retries"] = "0"
        return table


def _rows(table: Any, tasks: Sequence[Any], schema: pa.Schema) -> pa.Table:
    """Of these files, with null for columns that were added since."""
    scan = table.scan()
    found = ArrowScan(table.metadata, table.io, scan.projection(), scan.row_filter).to_table(tasks)
    return found.select(schema.names).cast(schema)


def _holds(table: Any, query: str, batch: int) -> bool:
    last = table.metadata.properties.get(BATCHES + query)
    if last is not None and int(last) >= batch:
        return True
    told = [one.summary.additional_properties for one in table.metadata.snapshots if one.summary is not None]
    return any(one.get("penstock.query") == query and int(one["penstock.batch"]) >= batch for one in told)


def _partition_columns(table: Any) -> list[str]:
    return list(PARTITION_COLUMNS[_by(table)])


def _by(table: Any) -> str:
    fields = table.spec().fields
    found = next((by for by, (name, _) in TRANSFORMS.items() if [field.name for field in fields] == [name]), None)
    if found is None and fields:
        raise LakeError(f"{'.'.join(table.name())} is partitioned by {table.spec()}, which no load makes")
    return found or "none"


def _data_file(file: Any) -> DataFile:
    partition = {str(at): str(file.partition[at]) for at in range(len(file.partition))}
    return DataFile(file.file_path, file.record_count, file.file_size_in_bytes, partition)


def _expression(where: Where) -> str:
    """A topic's name has no quotes."""
    return (
        f"_topic = '{where.topic}' and _partition = {where.partition} "
        f"and _offset >= {where.start} and _offset < {where.end}"
    )
