"""A format behind a registry's frames: each row names the schema that it was written with.

The reader's schema is fixed, so that the columns are; what was written with another version is read as the reader's
(Avro: resolved; Protobuf: by field numbers; JSON: by names). The schemas behind the ids come from a function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from penstock.schemas.avro_format import Avro
from penstock.schemas.avro_schema import parsed
from penstock.schemas.errors import SchemaError, Undecodable
from penstock.schemas.formats import Decoded, Format, one_array, scattered
from penstock.schemas.protobuf_format import Protobuf
from penstock.schemas.protobuf_schema import by_indexes, descriptor_of
from penstock.schemas.serdes import Serde
from penstock.schemas.specs import Spec, format_of
from penstock.schemas.wire_format import (
    framed,
    framed_column,
    read_indexes,
    unframed,
    unframed_column,
    written_indexes,
)  # fmt: skip

T = TypeVar("T")
Lookup = Callable[[int], Spec]
"""The schema behind an id; raises SchemaError where there is none."""


class Framed:
    """The values of a schema, each behind the id of the one that it was written with."""

    def __init__(self, spec: Spec, lookup: Lookup, schema_id: int | None = None) -> None:
        self.spec = spec
        self.lookup = lookup
        self.schema_id = schema_id
        """What encode writes; None if this one only reads."""
        self._reader = format_of(spec)
        self._writers: dict[int, Format | str] = {}
        """How each id that was met is read, or why it cannot be."""

    @property
    def name(self) -> str:
        return self._reader.name

    @property
    def type(self) -> pa.DataType:
        return self._reader.type

    def decode(self, data: pa.Array) -> Decoded:
        whole = one_array(data)
        frames = unframed_column(whole)
        parts: list[tuple[Any, Decoded]] = []
        for schema_id in pc.unique(frames.schema_ids.drop_null()).to_pylist():
            rows = pc.indices_nonzero(pc.fill_null(pc.equal(frames.schema_ids, schema_id), False))
            parts.append((rows.to_numpy(), self._decode(schema_id, frames.payloads.take(rows))))
        read = scattered(parts, len(whole), self.type)
        return Decoded(read.values, pc.coalesce(frames.reasons, read.reasons))

    def _decode(self, schema_id: int, payloads: pa.Array) -> Decoded:
        writer = self._writer(schema_id)
        if isinstance(writer, str):
            return _nothing(len(payloads), self.type, writer)
        if not isinstance(writer, Protobuf):
            return writer.decode(payloads)
        return self._messages(schema_id, writer, payloads)

    def _messages(self, schema_id: int, reader: Protobuf, payloads: pa.Array) -> Decoded:
        """Payloads behind message indexes; another message than the reader's is not read as if it were it."""
        bare: list[bytes | None] = []
        reasons: list[str | None] = []
        wanted = reader.descriptor.full_name
        named: dict[tuple[int, ...], str] = {}
        for one in payloads.to_pylist():
            try:
                indexes, at = read_indexes(one)
                if indexes not in named:
                    named[indexes] = self._message_name(schema_id, indexes)
                if named[indexes] != wanted:
                    raise Undecodable(f"a {named[indexes]}, not a {wanted}")
                bare.append(one[at:])
                reasons.append(None)
            except Undecodable as error:
                bare.append(None)
                reasons.append(error.reason)
        read = reader.decode(pa.array(bare, pa.binary()))
        return Decoded(read.values, pc.coalesce(read.reasons, pa.array(reasons, pa.string())))

    def _message_name(self, schema_id: int, indexes: tuple[int, ...]) -> str:
        spec = self.lookup(schema_id)
        try:
            return str(by_indexes(descriptor_of(spec.schema or "", None, spec.references), indexes).full_name)
        except SchemaError as error:
            raise Undecodable(str(error)) from None

    def _writer(self, schema_id: int) -> Format | str:
        if schema_id not in self._writers:
            try:
                self._writers[schema_id] = self._made(self.lookup(schema_id))
            except SchemaError as error:
                self._writers[schema_id] = f"schema {schema_id}: {error}"
        return self._writers[schema_id]

    def _made(self, spec: Spec) -> Format:
        if spec.format != self.spec.format:
            raise SchemaError(f"it is of {spec.format}, not {self.spec.format}")
        if isinstance(self._reader, Avro):
            return self._reader.written_by(parsed(spec.schema or "", spec.references))
        return self._reader

    def encode(self, values: pa.Array) -> pa.Array:
        if self.schema_id is None:
            raise SchemaError("the schema has no id to write: it was not registered")
        bare = self._reader.encode(values)
        if isinstance(self._reader, Protobuf):
            head = written_indexes(self._reader.indexes)
            bare = pa.array([None if one is None else head + one for one in bare.to_pylist()], pa.binary())
        return framed_column(self.schema_id, bare)


def _nothing(rows: int, kind: pa.DataType, why: str) -> Decoded:
    return Decoded(pa.nulls(rows, kind), pa.array([why] * rows, pa.string()))


class FramedSerde(Generic[T]):
    """One value at a time behind a frame; `serdes` gives the serde of an id, which reads what that schema wrote."""

    def __init__(
        self, schema_id: int, serdes: Callable[[int], Serde[T]], indexes: tuple[int, ...] | None = None
    ) -> None:
        self.schema_id = schema_id
        self.serdes = serdes
        self.indexes = indexes
        """Protobuf: which message of its file; None for the others."""

    def encode(self, obj: T | None) -> bytes | None:
        bare = self.serdes(self.schema_id).encode(obj)
        if bare is None:
            return None
        return framed(self.schema_id, bare if self.indexes is None else written_indexes(self.indexes) + bare)

    def decode(self, data: bytes) -> T:
        schema_id, payload = unframed(data)
        if self.indexes is not None:
            indexes, at = read_indexes(payload)
            if indexes != self.indexes:
                raise Undecodable(f"message {list(indexes)} of its file, not {list(self.indexes)}")
            payload = payload[at:]
        return self.serdes(schema_id).decode(payload)
