"""Python types to Arrow and back: dataclasses, TypedDicts, NamedTuples and msgspec.Structs, and what is in them.

| Python | Arrow | | Python | Arrow |
|---|---|---|---|---|
| bool, int, float | bool, int64, double | | list, tuple, set, frozenset of T | list of T |
| str, bytes, uuid.UUID | string, binary, string | | dict[str, T] | map |
| datetime, date | timestamp us UTC, date32 | | dataclass and the like | struct |
| Decimal | decimal128(38, 18) | | Enum, Literal | the type of its values |
| T or None | T, nullable | | Any, unions of several | string: the JSON text |
| Annotated[int, pa.int32()] | the Arrow type it is annotated with | | | |

A field is nullable if its type has None in it, or if it has a default: a missing one takes that when rows become
objects again. Names are those that JSON has (msgspec's renamed fields too).
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec
import pyarrow as pa

from penstock.schemas.errors import SchemaError, Undecodable
from penstock.schemas.formats import one_array
from penstock.schemas.json_schema import RAW
from penstock.schemas.pylists import pylist

SCALARS: dict[Any, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    bytearray: pa.binary(),
    datetime: pa.timestamp("us", "UTC"),
    date: pa.date32(),
    time: pa.string(),
    Decimal: pa.decimal128(38, 18),
}
SEQUENCES = (list, tuple, set, frozenset, Sequence, Iterable)
DEFAULTED: dict[bytes, bytes] = {b"penstock.null": b"default"}
"""The metadata of a field that is nullable only because it has a default."""
AS_THEY_ARE = (datetime, date, Decimal, bytes)


class Member(NamedTuple):
    """A field of a class with fields."""

    name: str
    kind: Any
    has_default: bool


def is_record(kind: Any) -> bool:
    """Whether it is a class with named and typed fields."""
    return isinstance(kind, type) and (
        dataclasses.is_dataclass(kind)
        or issubclass(kind, msgspec.Struct)
        or typing.is_typeddict(kind)
        or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
    )


def arrow_schema(kind: Any) -> pa.Schema:
    """The columns of a class with fields."""
    if not is_record(kind):
        raise SchemaError(
            f"{_named(kind)} has no fields; give a dataclass, a TypedDict, a NamedTuple or a msgspec.Struct"
        )
    return pa.schema(list(arrow_type(kind)))


def arrow_type(kind: Any) -> pa.DataType:
    """The Arrow type of a Python type: a struct for a class with fields."""
    return arrow_field("value", kind).type


def arrow_field(name: str, kind: Any, has_default: bool = False, within: tuple[Any, ...] = ()) -> pa.Field:
    """A field of this name and Python type."""
    found = _field(name, kind, within)
    if not has_default or found.nullable:
        return found
    return found.with_nullable(True).with_metadata(DEFAULTED)


def _field(name: str, kind: Any, within: tuple[Any, ...]) -> pa.Field:
    if get_origin(kind) is Annotated:
        base, *notes = get_args(kind)
        told = [note for note in notes if isinstance(note, pa.DataType)]
        return pa.field(name, told[0], _optional(base)) if told else _field(name, base, within)
    if hasattr(kind, "__supertype__"):
        return _field(name, kind.__supertype__, within)
    if get_origin(kind) in (Union, types.UnionType):
        return _union(name, kind, within)
    if kind is Any or kind is object or kind is dict or kind is Mapping:
        return pa.field(name, pa.string(), True, RAW)
    if kind is None or kind is type(None):
        return pa.field(name, pa.null(), True)
    return pa.field(name, _solid(name, kind, within), False)


def _optional(kind: Any) -> bool:
    return get_origin(kind) in (Union, types.UnionType) and type(None) in get_args(kind)


def _union(name: str, kind: Any, within: tuple[Any, ...]) -> pa.Field:
    members = get_args(kind)
    solid = [one for one in members if one is not type(None)]
    nullable = len(solid) < len(members)
    if set(solid) == {int, float}:
        return pa.field(name, pa.float64(), nullable)
    if len(solid) != 1:
        return pa.field(name, pa.string(), nullable, RAW)
    inner = _field(name, solid[0], within)
    return inner.with_nullable(inner.nullable or nullable)


def _solid(name: str, kind: Any, within: tuple[Any, ...]) -> pa.DataType:
    if kind in SCALARS:
        return SCALARS[kind]
    if getattr(kind, "__module__", "") == "uuid":  # by name: that module makes chance, and is not imported here
        return pa.string()
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return _of_values(name, inner)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _of_values(name, [one.value for one in kind])
    if kind in SEQUENCES or origin in SEQUENCES:
        return pa.list_(_field("item", inner[0] if inner else Any, within))
    if origin in (dict, Mapping):
        return pa.map_(SCALARS.get(inner[0], pa.string()), _field("value", inner[1], within))
    if is_record(kind):
        if kind in within:
            raise SchemaError(f"{_named(kind)} holds itself in {name!r}: such values have no columns")
        held = (*within, kind)
        return pa.struct([arrow_field(one.name, one.kind, one.has_default, held) for one in members_of(kind)])
    raise SchemaError(f"{name!r} has the type {_named(kind)}, which has no column type; annotate it with an Arrow type")


def _of_values(name: str, values: Iterable[Any]) -> pa.DataType:
    kinds = {SCALARS.get(type(value)) for value in values}
    if len(kinds) != 1 or None in kinds:
        raise SchemaError(f"the values of {name!r} are not of one simple type")
    return kinds.pop()


def members_of(kind: type) -> list[Member]:
    """The fields of a class, with their types resolved."""
    hints = typing.get_type_hints(kind, include_extras=True)
    if issubclass(kind, msgspec.Struct):
        fields = msgspec.structs.fields(kind)
        return [Member(one.encode_name, hints[one.name], not one.required) for one in fields]
    if dataclasses.is_dataclass(kind):
        return [Member(one.name, hints[one.name], _has_default(one)) for one in dataclasses.fields(kind)]
    if typing.is_typeddict(kind):
        required: frozenset[str] = getattr(kind, "__required_keys__", frozenset())
        return [Member(name, *_bare(hint, name in required)) for name, hint in hints.items()]
    defaults: dict[str, Any] = kind._field_defaults  # type: ignore[attr-defined] # a NamedTuple, by is_record
    return [Member(name, hint, name in defaults) for name, hint in hints.items()]


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _bare(hint: Any, required: bool) -> tuple[Any, bool]:
    """A TypedDict's type without Required[] or NotRequired[], and whether it may be left out.

    The class itself does not know that where annotations are texts.
    """
    origin = get_origin(hint)
    if origin in (typing.Required, typing.NotRequired):
        return get_args(hint)[0], origin is typing.NotRequired
    return hint, not required


def _named(kind: Any) -> str:
    return getattr(kind, "__name__", None) or str(kind)


def columns_of(objects: Iterable[Any], kind: Any) -> pa.Array:
    """Objects of a type as a column."""
    field = arrow_field("value", kind)
    rows = [plain_of(one) for one in objects]
    if _has_raw(field):
        return pa.array([_with_texts(row, field) for row in rows], field.type)
    return pa.array(rows, field.type)


def plain_of(obj: Any) -> Any:
    """An object as dicts, lists and the simple types that Arrow takes."""
    return msgspec.to_builtins(obj, builtin_types=AS_THEY_ARE, enc_hook=None)


def objects_of(values: pa.Array, kind: Any) -> list[Any]:
    """A column as objects of a type; a null row is None."""
    field = arrow_field("value", kind)
    rows = pylist(one_array(values))
    try:
        return [None if row is None else msgspec.convert(_without_nulls(row, field), kind) for row in rows]
    except msgspec.ValidationError as error:
        raise Undecodable(f"a row is no {_named(kind)}: {error}") from None


def _without_nulls(value: Any, field: pa.Field) -> Any:
    """Nulls left out that stand for a default; maps, which Arrow gives as pairs, as dicts again."""
    if value is None:
        return None
    if field.metadata == RAW:
        return msgspec.json.decode(value)
    kind = field.type
    if pa.types.is_struct(kind):
        members = {kind.field(at).name: kind.field(at) for at in range(kind.num_fields)}
        return {
            name: _without_nulls(one, members[name]) if name in members else one
            for name, one in value.items()
            if one is not None or name not in members or members[name].metadata != DEFAULTED
        }
    if pa.types.is_list(kind):
        return [_without_nulls(one, kind.value_field) for one in value]
    if pa.types.is_map(kind):
        return {name: _without_nulls(one, kind.item_field) for name, one in value}
    return value


def _has_raw(field: pa.Field) -> bool:
    return field.metadata == RAW or any(_has_raw(field.type.field(at)) for at in range(field.type.num_fields))


def _with_texts(value: Any, field: pa.Field) -> Any:
    """What is kept as JSON, as JSON."""
    if value is None:
        return None
    if field.metadata == RAW:
        return msgspec.json.encode(value).decode()
    kind = field.type
    if pa.types.is_struct(kind):
        return {one.name: _with_texts(value.get(one.name), one) for one in kind}
    if pa.types.is_list(kind):
        return [_with_texts(one, kind.value_field) for one in value]
    if pa.types.is_map(kind):
        return [(name, _with_texts(one, kind.item_field)) for name, one in value.items()]
    return value
