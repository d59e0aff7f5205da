"""Avro values, bare or as a registry's frame holds them: as columns, and one at a time."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import fastavro
import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from penstock.schemas import dataclasses
from penstock.schemas.avro_columns import AvroColumns
from penstock.schemas.avro_resolution import Unresolved, resolution
from penstock.schemas.avro_schema import arrow_field, arrow_type, avro_schema, merged_number, parsed, solid_branches
from penstock.schemas.completeness import incomplete
from penstock.schemas.errors import SchemaError, Undecodable
from penstock.schemas.formats import Decoded, gathered, one_array, scattered
from penstock.schemas.pylists import pylist

T = TypeVar("T")
Schema = str | bytes | Mapping[str, Any] | list[Any]

BROKEN = (
    EOFError, IndexError, KeyError, ValueError, TypeError, OverflowError, AttributeError, StopIteration,
    fastavro.schema.SchemaParseException, fastavro.read.SchemaResolutionError, fastavro.validation.ValidationError,
)  # fmt: skip
"""What fastavro raises for bytes or values that are not of its schema."""


class Avro:
    """Avro of one schema; what was written with another one is resolved to it."""

    name = "avro"

    def __init__(
        self, schema: Schema, writer: Schema | None = None, references: Mapping[str, str] | None = None
    ) -> None:
        self.tree = parsed(schema, references)
        self.type = arrow_type(self.tree)
        self._writer = self.tree if writer is None else parsed(writer, references)
        self._columns = AvroColumns(self._writer)
        self._change = resolution(self._writer, self.tree)

    def __reduce__(self) -> tuple[Callable[..., Avro], tuple[Any, Any]]:
        return (Avro, (self.tree, self._writer))

    def written_by(self, writer: Any) -> Avro:
        """The same reader for what another schema wrote (a parsed one)."""
        return Avro(self.tree, writer)

    def decode(self, data: pa.Array) -> Decoded:
        whole = one_array(data).cast(pa.binary())
        if whole.null_count:
            rows = pc.indices_nonzero(pc.is_valid(whole))
            return scattered([(rows.to_numpy(), self.decode(whole.drop_null()))], len(whole), self.type)
        read = self._columns.decode(whole)
        return read if self._change is None else self._resolved(read, self._change)

    def _resolved(self, read: Decoded, change: Callable[[pa.Array], pa.Array]) -> Decoded:
        """Values as the reader's schema has them; row by row if one of them has no place there."""
        try:
            values = change(read.values)
            required = not arrow_field("value", self.tree).nullable
            missing = pc.and_(incomplete(values, self.type, not required), pc.is_valid(read.values))
            if pc.any(missing).as_py():
                raise Unresolved("the reader's schema requires a value where null was written")
        except (Unresolved, pa.ArrowInvalid) as error:
            if len(read.values) == 1:
                said = f"not readable with the reader's schema: {error}"
                return Decoded(pa.nulls(1, self.type), pa.array([said]))
            middle = len(read.values) // 2
            halves = [Decoded(*(column[cut] for column in read)) for cut in (slice(middle), slice(middle, None))]
            return gathered([self._resolved(one, change) for one in halves], self.type)
        return Decoded(values, read.reasons)

    def encode(self, values: pa.Array) -> pa.Array:
        write = _writing(self.tree)
        rows = [
            None if value is None else _encoded(self.tree, write, value, f"row {row}")
            for row, value in enumerate(pylist(one_array(values)))
        ]
        return pa.array(rows, pa.binary())


class AvroSerde(Generic[T]):
    """One Avro value at a time: dicts, or objects of a type (a dataclass, a TypedDict, a msgspec.Struct)."""

    def __init__(self, schema: Schema | None = None, kind: Any = dict, writer: Schema | None = None) -> None:
        self.kind = kind
        self._schema = _schema_of(kind) if schema is None else schema
        self._writer = writer
        self._parsed = fastavro.parse_schema(_document(self._schema))
        self._has_ints = '"int"' in str(msgspec.json.encode(_document(self._schema)))
        self._written = self._parsed if writer is None else fastavro.parse_schema(_document(writer))

    def __reduce__(self) -> tuple[type[AvroSerde[Any]], tuple[Any, Any, Any]]:
        return (AvroSerde, (self._schema, self.kind, self._writer))

    def encode(self, obj: T | None) -> bytes | None:
        if obj is None:
            return None
        value = obj if isinstance(obj, dict) else dataclasses.plain_of(obj)
        return _encoded(self._parsed, self._checked, value, "the value")

    def _checked(self, value: Any) -> Any:
        if self._has_ints:
            fastavro.validate(value, self._parsed, raise_errors=True)
        return value

    def decode(self, data: bytes) -> T:
        source = io.BytesIO(data)
        try:
            found: Any = fastavro.schemaless_reader(source, self._written, self._parsed)
        except BROKEN as error:
            raise Undecodable(f"not Avro of this schema: {type(error).__name__}: {error}") from None
        if source.tell() != len(data):
            raise Undecodable("not Avro of this schema: bytes are left over behind the value")
        if self.kind is dict:
            return found  # type: ignore[no-any-return] # T is dict
        try:
            made: T = msgspec.convert(found, self.kind)
        except msgspec.ValidationError as error:
            raise Undecodable(f"not {getattr(self.kind, '__name__', self.kind)}: {error}") from None
        return made


def _schema_of(kind: Any) -> dict[str, Any]:
    if not dataclasses.is_record(kind):
        raise SchemaError("an Avro serde needs a schema, or a dataclass to make one from")
    return avro_schema(dataclasses.arrow_schema(kind), kind.__name__)


def _document(schema: Schema) -> Any:
    try:
        return msgspec.json.decode(schema) if isinstance(schema, str | bytes) else schema
    except msgspec.DecodeError as error:
        raise SchemaError(f"the Avro schema is not JSON: {error}") from None


def _encoded(schema: Any, prepared: Callable[[Any], Any], value: Any, which: str) -> bytes:
    target = io.BytesIO()
    try:
        fastavro.schemaless_writer(target, schema, prepared(value))
    except BROKEN as error:
        raise Undecodable(f"{which} has no Avro of this schema: {error}") from None
    return target.getvalue()


def _writing(tree: Any) -> Callable[[Any], Any]:
    """What makes of Arrow's Python values those that fastavro writes: maps as dicts, the branch that a union has."""
    if isinstance(tree, list):
        return _union(tree)
    if tree["type"] == "record":
        members = [(one["name"], _writing(one["type"])) for one in tree["fields"]]
        return lambda value: {name: write(value[name]) for name, write in members}
    if tree["type"] == "array":
        item = _writing(tree["items"])
        return lambda value: [item(one) for one in value]
    if tree["type"] == "map":
        member = _writing(tree["values"])
        return lambda value: {name: member(one) for name, one in value}
    if tree["type"] == "int":
        return _int
    return _same


def _int(value: Any) -> Any:
    """fastavro would write more than 32 bits, which no reader takes for an int."""
    if isinstance(value, int) and not -(1 << 31) <= value < 1 << 31:
        raise ValueError(f"{value} has more than the 32 bits of an int")
    return value


def _same(value: Any) -> Any:
    return value


def _union(branches: list[Any]) -> Callable[[Any], Any]:
    """Values with the name of their branch: fastavro would try one after another."""
    solid = [(_branch_name(one), _writing(one)) for one in solid_branches(branches)]
    if not solid:
        return lambda value: None
    name, write = max(solid, key=lambda one: one[0] in ("long", "double"))
    if len(solid) == 1 or merged_number(solid_branches(branches)):
        return lambda value: None if value is None else (name, write(value))

    def write_member(value: Any) -> Any:
        if value is None:
            return None
        at = next((at for at in range(len(solid)) if value[f"member{at}"] is not None), 0)
        return (solid[at][0], solid[at][1](value[f"member{at}"]))

    return write_member


def _branch_name(tree: Any) -> str:
    return str(tree["name"] if tree["type"] in ("record", "enum", "fixed") else tree["type"])
