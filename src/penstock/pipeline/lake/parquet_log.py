"""The log of a Parquet table: which files are its rows, and with which batches they came.

`_penstock_log/<version>.json` are the entries. An entry whose `since` is its own version lists all files of the table;
the others say what they add to and remove from the entries before them, back to `since`. The page about it is
docs/formats/lake-commits.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from penstock.pipeline.lake.errors import LakeError
from penstock.pipeline.lake.files import DataFile
from penstock.pipeline.lake.place import Place
from penstock.schemas.ddl import arrow_type, ddl_of

DIRECTORY = "_penstock_log"
FORMAT = 1
WHOLE_EVERY = 50
"""entries; then comes one that lists all files, so that a reader needs no more than these."""


@dataclass(frozen=True)
class State:
    """A table after its last entry."""

    version: int
    schema: pa.Schema
    by: str
    files: Mapping[str, DataFile] = field(default_factory=dict)
    """by path."""
    batches: Mapping[str, int] = field(default_factory=dict)
    """the last batch of each query."""
    since: int = 0


@dataclass(frozen=True)
class Change:
    """What an entry does."""

    add: Sequence[DataFile] = ()
    remove: Sequence[str] = ()
    query: str | None = None
    batch: int | None = None
    schema: pa.Schema | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "batch": self.batch,
            "add": [_file_to_json(file) for file in self.add],
            "remove": list(self.remove),
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Change:
        return cls([_file_from_json(one) for one in told["add"]], told["remove"], told["query"], told["batch"])


class ParquetLog:
    def __init__(self, place: Place) -> None:
        self._place = place
        self._known: State | None = None

    def state(self) -> State | None:
        """None where there is no table."""
        last = self._last_version()
        if last is None:
            return None
        if self._known is None or self._known.version > last:
            self._known = self._read(last)
        while self._known.version < last:
            self._known = _after(self._known, self._entry(self._known.version + 1))
        return self._known

    def create(self, schema: pa.Schema, by: str) -> None:
        """The first entry; somebody else's may be there already."""
        self._put(State(0, schema, by), Change())

    def append(self, change: Change) -> State:
        """The next entry. Where it names a batch that the table holds, nothing is done."""
        while True:
            state = self.state()
            assert state is not None, "a table begins with `create`"
            if holds(state, change.query, change.batch):
                return state
            following = _applied(state, change)
            if self._put(following, change):
                self._known = following
                return following

    def _put(self, state: State, change: Change) -> bool:
        entry: dict[str, Any] = {
            "format": FORMAT,
            "version": state.version,
            "since": state.since,
            "by": state.by,
            "schema": ddl_of(state.schema),
            "batches": dict(state.batches),
            **change.to_json(),
        }
        if state.since == state.version:
            entry["files"] = [_file_to_json(file) for file in state.files.values()]
        content = json.dumps(entry, indent=1).encode()
        return self._place.put_new(f"{DIRECTORY}/{state.version:020d}.json", content)

    def _last_version(self) -> int | None:
        names = [name for name in self._place.names(DIRECTORY) if name.endswith(".json")]
        return int(names[-1].removesuffix(".json")) if names else None

    def _read(self, last: int) -> State:
        since = self._entry(last)["since"]
        entry = self._entry(since)
        state = State(since, _schema(entry), entry["by"], _files(entry["files"]), entry["batches"], since)
        for version in range(since + 1, last + 1):
            state = _after(state, self._entry(version))
        return state

    def _entry(self, version: int) -> dict[str, Any]:
        path = f"{DIRECTORY}/{version:020d}.json"
        try:
            entry: dict[str, Any] = json.loads(self._place.read(path))
        except (OSError, ValueError) as error:
            raise LakeError(f"{self._place.uri_of(path)} cannot be read: {error}") from None
        if entry.get("format") != FORMAT:
            raise LakeError(
                f"{self._place.uri_of(path)} has format {entry.get('format')}, and this version of Penstock reads "
                f"{FORMAT}: use the version that wrote it"
            )
        return entry


def holds(state: State, query: str | None, batch: int | None) -> bool:
    return query is not None and batch is not None and state.batches.get(query, -1) >= batch


def _applied(state: State, change: Change) -> State:
    gone = set(change.remove)
    files = {path: file for path, file in state.files.items() if path not in gone}
    files |= {file.path: file for file in change.add}
    batches = dict(state.batches)
    if change.query is not None and change.batch is not None:
        batches[change.query] = change.batch
    version = state.version + 1
    whole = bool(change.remove) or version - state.since >= WHOLE_EVERY
    since = version if whole else state.since
    return State(version, change.schema or state.schema, state.by, files, batches, since)


def _after(state: State, entry: Mapping[str, Any]) -> State:
    change = replace(Change.from_json(entry), schema=_schema(entry))
    return replace(_applied(state, change), since=entry["since"])


def _schema(entry: Mapping[str, Any]) -> pa.Schema:
    return pa.schema(list(arrow_type(entry["schema"])))


def _files(told: Sequence[Mapping[str, Any]]) -> dict[str, DataFile]:
    return {one["path"]: _file_from_json(one) for one in told}


def _file_to_json(file: DataFile) -> dict[str, Any]:
    return {"path": file.path, "rows": file.rows, "bytes": file.size_bytes, "partition": dict(file.partition)}


def _file_from_json(told: Mapping[str, Any]) -> DataFile:
    return DataFile(told["path"], told["rows"], told["bytes"], told["partition"])
