"""Loads into an object store: every kind of table at s3://, by the API and by the command, read back by others."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from penstock.cli import load as command
from penstock.cli.failures import Failure
from penstock.pipeline.lake import load, objects, open_table
from penstock.pipeline.lake.errors import LakeError
from penstock.pipeline.lake.place import Place
from penstock.pipeline.lake.tables import KINDS, Table
from tests.pipeline.conftest import Running
from tests.pipeline.object_store import BUCKET, ObjectStore, serving
from tests.pipeline.test_lake_load import consumed, fill, json_options
from tests.unit.pipeline.lake_rows import BATCH_ROWS, QUERY, SCHEMA, offsets, run, write

VALUE = "customer STRING, amount INT"


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with serving() as made:
        yield made


def catalog(kind: str, directory: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{directory}/catalog.db"} if kind == "iceberg" else {}


def table_at(kind: str, store: ObjectStore, path: str, directory: Path) -> Table:
    return open_table(f"s3://{BUCKET}/{path}", kind, storage=store.storage, catalog=catalog(kind, directory))


def read_by_others(kind: str, store: ObjectStore, path: str, directory: Path) -> pa.Table:
    """A Parquet table as the files that are there, whatever its log says."""
    if kind == "delta":
        from deltalake import DeltaTable

        settings = Place.of(f"s3://{BUCKET}/{path}", store.storage).delta_storage
        return DeltaTable(f"s3://{BUCKET}/{path}", storage_options=settings).to_pyarrow_table()
    if kind == "iceberg":
        from pyiceberg.catalog import load_catalog

        return (
            load_catalog("penstock", **catalog(kind, directory), **store.storage)
            .load_table(f"lake.{path}")
            .scan()
            .to_arrow()
        )
    files = [one for one in store.paths(path) if one.endswith(".parquet")]
    return ds.dataset(files, filesystem=store.filesystem(), format="parquet").to_table()


def run_command(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.configure(parser)
    return command.run(parser.parse_args(list(arguments)))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_topic_is_in_a_bucket_once_across_restarts_and_goes_back_into_a_topic(
    kind: str, spark: Any, penstock_cluster: Running, store: ObjectStore, tmp_path: Path
) -> None:
    topic, path = penstock_cluster.create_topic(partitions=2), f"{kind}_orders"
    to, checkpoint, bootstrap = f"s3://{BUCKET}/{path}", tmp_path / "checkpoint", penstock_cluster.bootstrap
    fill(penstock_cluster, topic, range(20))
    first = load(
        topic,
        to,
        bootstrap=bootstrap,
        kind=kind,
        once=True,
        options=json_options(maxOffsetsPerTrigger="10"),
        storage=store.storage,
        catalog=catalog(kind, tmp_path),
        checkpoint=str(checkpoint),
        spark=spark,
    )
    assert first.wait() and first.totals.rows == 20 and first.totals.batches == 2

    # As if it had been killed before Spark noted that its last batch is done: the batch is begun again.
    for file in (checkpoint / "commits").glob("*1*"):
        file.unlink()
    fill(penstock_cluster, topic, range(20, 26))
    given = [f"--storage={name}={value}" for name, value in store.storage.items()]
    given += [f"--catalog={name}={value}" for name, value in catalog(kind, tmp_path).items()]
    common = ["-b", bootstrap, "--to", to, "--as", kind, "--value-format", "json", *given]
    formats = ["--value-schema", VALUE, "--key-format", "text", "--checkpoint", str(checkpoint)]
    assert run_command(topic, *common, *formats, "--once", "--compact") == 0
    found = read_by_others(kind, store, path, tmp_path)
    assert sorted(found["amount"].to_pylist()) == list(range(26))

    again = f"{topic}-again"
    assert run_command(again, *common, "--replay") == 0
    assert run_command(again, *common, "--replay") == 0
    records = consumed(penstock_cluster, again, 26)
    assert sorted(record.key for record in records) == sorted(f"k{number}".encode() for number in range(26))
    with pytest.raises(Failure, match="needs a checkpoint"):
        run_command(topic, *common, "--value-schema", VALUE, "--once")


@pytest.mark.parametrize("kind", list(KINDS))
def test_writers_at_the_same_moment_overwrite_nothing(kind: str, store: ObjectStore, tmp_path: Path) -> None:
    """Three loads of their own, and two drivers at the same batch of one of them."""
    name = f"{kind}_race"
    table_at(kind, store, name, tmp_path).prepare(SCHEMA, "day")
    together = threading.Barrier(4)
    failed: list[BaseException] = []

    def writer(number: int, query: str, attempt: str) -> None:
        try:
            table = table_at(kind, store, name, tmp_path)
            files = write(table, number, attempt)
            together.wait(60)
            table.commit(query, 0, files)
        except BaseException as error:
            failed.append(error)

    who = [(0, QUERY, "a"), (0, QUERY, "b"), (1, f"1{QUERY[1:]}", "c"), (2, f"2{QUERY[1:]}", "d")]
    threads = [threading.Thread(target=writer, args=one) for one in who]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert offsets(table_at(kind, store, name, tmp_path)) == list(range(3 * BATCH_ROWS))


def test_a_parquet_commit_that_breaks_off_between_its_objects_is_ended_at_the_next_start(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object is moved by a copy and a removal: whatever of it was done is done again."""
    real = Place.move

    class Killed(BaseException):
        pass

    def copy_and_die(self: Place, source: str, target: str) -> None:
        real(self, source, target)
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(Place, "move", copy_and_die)
        run(table_at("parquet", store, "broken", tmp_path), "first")
    table = table_at("parquet", store, "broken", tmp_path)
    assert offsets(table) == []
    run(table, "again")
    assert offsets(table) == sorted(read_by_others("parquet", store, "broken", tmp_path)["_offset"].to_pylist())
    assert len(offsets(table)) == 4 * BATCH_ROWS
    assert [one for one in store.paths("broken") if "_staging" in one or one.endswith(".pending")] == []


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_a_store_that_overwrites_is_refused_before_the_table_is_made(
    kind: str, store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "put_new", lambda *_: True)
    with pytest.raises(LakeError, match=r"writes over an object .*If-None-Match.* use a store that knows it"):
        table_at(kind, store, f"{kind}_overwritten", tmp_path).prepare(SCHEMA, "day")
    assert not table_at(kind, store, f"{kind}_overwritten", tmp_path).exists


def test_settings_that_let_delta_overwrite_commits_are_refused(store: ObjectStore) -> None:
    storage = {**store.storage, "AWS_S3_ALLOW_UNSAFE_RENAME": "true"}
    with pytest.raises(LakeError, match="AWS_S3_ALLOW_UNSAFE_RENAME=true two commits could overwrite each other"):
        open_table(f"s3://{BUCKET}/unsafe", "delta", storage=storage)
