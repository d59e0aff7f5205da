"""Protobuf messages: from texts to message classes, and to Arrow.

| Protobuf | Arrow |
|---|---|
| double, float, bool, string, bytes | double, float, bool, string, binary |
| int32, sint32, sfixed32; int64, sint64, sfixed64 | int32; int64 |
| uint32, fixed32; uint64, fixed64 | int64; decimal128(20, 0), as Spark reads them |
| enum | string: the name; a number that has none, as its digits |
| message, group; repeated; map | struct; list; map |
| oneof | its fields, of which at most one is not null |
| google.protobuf.Timestamp; Duration | timestamp us UTC; duration us |
| the wrappers (google.protobuf.Int64Value ...) | the type inside, nullable |
| google.protobuf.Struct, Value, ListValue | string: the JSON text |

A field without presence (proto3 without `optional`) is never null: what was not written is zero, empty or false.
A message that holds itself has no columns and is refused.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from penstock.schemas.errors import SchemaError
from penstock.schemas.json_schema import RAW
from penstock.schemas.protobuf_text import file_descriptor

WELL_KNOWN = "google/protobuf/"
SCALARS: dict[int, pa.DataType] = {
    FieldDescriptor.TYPE_DOUBLE: pa.float64(),
    FieldDescriptor.TYPE_FLOAT: pa.float32(),
    FieldDescriptor.TYPE_INT64: pa.int64(),
    FieldDescriptor.TYPE_SINT64: pa.int64(),
    FieldDescriptor.TYPE_SFIXED64: pa.int64(),
    FieldDescriptor.TYPE_INT32: pa.int32(),
    FieldDescriptor.TYPE_SINT32: pa.int32(),
    FieldDescriptor.TYPE_SFIXED32: pa.int32(),
    FieldDescriptor.TYPE_UINT32: pa.int64(),
    FieldDescriptor.TYPE_FIXED32: pa.int64(),
    FieldDescriptor.TYPE_UINT64: pa.decimal128(20, 0),
    FieldDescriptor.TYPE_FIXED64: pa.decimal128(20, 0),
    FieldDescriptor.TYPE_BOOL: pa.bool_(),
    FieldDescriptor.TYPE_STRING: pa.string(),
    FieldDescriptor.TYPE_BYTES: pa.binary(),
    FieldDescriptor.TYPE_ENUM: pa.string(),
}
TIMESTAMP, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
MESSAGES: dict[str, pa.DataType] = {TIMESTAMP: pa.timestamp("us", "UTC"), DURATION: pa.duration("us")}
DOCUMENTS = ("google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue")
WRAPPERS = tuple(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)


def descriptor_of(text: str, message: str | None = None, imports: Mapping[str, str] | None = None) -> Descriptor:
    """The message of this name in a .proto text: its full name, its name in the file, or the first one for None."""
    file, pool = _loaded(text, imports or {})
    names = list(_names(file))
    if not names:
        raise SchemaError("the .proto text has no message")
    full = [f"{file.package}.{name}" if file.package else name for name in names]
    if message is None:
        return pool.FindMessageTypeByName(full[0])
    for candidate, name in zip(full, names, strict=True):
        if message in (candidate, name):
            return pool.FindMessageTypeByName(candidate)
    try:
        return pool.FindMessageTypeByName(message)
    except KeyError:
        raise SchemaError(f"the .proto text has no message {message!r}; it has {', '.join(names)}") from None


def _names(file: FileDescriptorProto) -> Iterator[str]:
    """Messages, each before those inside it."""
    waiting = [(one.name, one) for one in file.message_type]
    while waiting:
        name, one = waiting.pop(0)
        yield name
        inner = [(f"{name}.{nested.name}", nested) for nested in one.nested_type if not nested.options.map_entry]
        waiting = [*inner, *waiting]


def _loaded(text: str, imports: Mapping[str, str]) -> tuple[FileDescriptorProto, DescriptorPool]:
    pool = DescriptorPool()
    file = file_descriptor(text)
    loaded: set[str] = set()
    for name in file.dependency:
        _load(pool, name, imports, loaded)
    try:
        pool.Add(file)
        pool.FindFileByName(file.name)
    except (TypeError, KeyError) as error:
        raise SchemaError(f"the .proto text does not hold together: {str(error).strip()}") from None
    return file, pool


def _load(pool: DescriptorPool, name: str, imports: Mapping[str, str], loaded: set[str]) -> None:
    if name in loaded:
        return
    loaded.add(name)
    file = _imported(name, imports)
    for inner in file.dependency:
        _load(pool, inner, imports, loaded)
    try:
        pool.Add(file)
    except TypeError as error:
        raise SchemaError(f"the imported {name} does not hold together: {str(error).strip()}") from None


def _imported(name: str, imports: Mapping[str, str]) -> FileDescriptorProto:
    if name in imports:
        return file_descriptor(imports[name], name)
    if not name.startswith(WELL_KNOWN):
        raise SchemaError(f"the import {name!r} is not there; give its text as a reference of the schema")
    found = FileDescriptorProto()
    stem = name.removeprefix(WELL_KNOWN).removesuffix(".proto")
    try:
        importlib.import_module(f"google.protobuf.{stem}_pb2").DESCRIPTOR.CopyToProto(found)
    except ModuleNotFoundError:
        raise SchemaError(f"Protobuf has no {name!r}") from None
    return found


def by_indexes(descriptor: Descriptor, indexes: tuple[int, ...]) -> Descriptor:
    """The message that a registry's frame names: the place in the file, then in the message, and so on."""
    file = FileDescriptorProto()
    descriptor.file.CopyToProto(file)
    inner, name = file.message_type, file.package
    for index in indexes:
        if not 0 <= index < len(inner):
            raise SchemaError(f"the schema has no message at {list(indexes)}")
        name = f"{name}.{inner[index].name}" if name else inner[index].name
        inner = inner[index].nested_type
    return descriptor.file.pool.FindMessageTypeByName(name)


def indexes_of(descriptor: Descriptor) -> tuple[int, ...]:
    """Where a message stands in its file, as a registry's frame names it."""
    outer = descriptor.containing_type
    siblings = outer.nested_types if outer is not None else descriptor.file.message_types_by_name.values()
    if outer is None:
        file = FileDescriptorProto()
        descriptor.file.CopyToProto(file)
        return ([one.name for one in file.message_type].index(descriptor.name),)
    return (*indexes_of(outer), [one.name for one in siblings].index(descriptor.name))


def is_repeated(field: FieldDescriptor) -> bool:
    return bool(field.is_repeated)


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def arrow_type(message: Descriptor, within: tuple[str, ...] = ()) -> pa.DataType:
    """The struct of a message."""
    if message.full_name in within:
        raise SchemaError(f"the message {message.full_name} holds itself: such values have no columns")
    return pa.struct([arrow_field(one, (*within, message.full_name)) for one in message.fields])


def arrow_field(field: FieldDescriptor, within: tuple[str, ...] = ()) -> pa.Field:
    """A field of a message, whole."""
    if is_map(field):
        key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
        item = one_field("value", value, within)
        return pa.field(field.name, pa.map_(one_field("key", key, within).type, item.with_nullable(False)), False)
    if is_repeated(field):
        return pa.field(field.name, pa.list_(one_field("item", field, within).with_nullable(False)), False)
    return one_field(field.name, field, within)


def one_field(name: str, field: FieldDescriptor, within: tuple[str, ...]) -> pa.Field:
    """One value of a field, without its repetition."""
    message = field.message_type
    if message is None:
        return pa.field(name, SCALARS[field.type], field.has_presence)
    if message.full_name in MESSAGES:
        return pa.field(name, MESSAGES[message.full_name], True)
    if message.full_name in WRAPPERS:
        return pa.field(name, SCALARS[message.fields_by_name["value"].type], True)
    if message.full_name in DOCUMENTS:
        return pa.field(name, pa.string(), True, RAW)
    return pa.field(name, arrow_type(message, within), True)


def message_type_name(field: FieldDescriptor) -> str:
    found: Any = field.message_type
    return "" if found is None else str(found.full_name)
