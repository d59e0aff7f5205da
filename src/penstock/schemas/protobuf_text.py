"""A .proto text to a file descriptor, without a protoc.

Read: proto2 and proto3; messages, nested and repeated fields, maps, enums, oneofs, groups, optional; imports by name.
Left out, for they do not change the bytes of a value: services, extensions, reserved names, custom options.
"""

from __future__ import annotations

from typing import Any, NoReturn

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from proto_schema_parser import ast
from proto_schema_parser.parser import Parser

from penstock.schemas.errors import SchemaError

SCALARS: dict[str, int] = {
    "double": FieldDescriptorProto.TYPE_DOUBLE,
    "float": FieldDescriptorProto.TYPE_FLOAT,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "uint64": FieldDescriptorProto.TYPE_UINT64,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "fixed64": FieldDescriptorProto.TYPE_FIXED64,
    "fixed32": FieldDescriptorProto.TYPE_FIXED32,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "string": FieldDescriptorProto.TYPE_STRING,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "uint32": FieldDescriptorProto.TYPE_UINT32,
    "sfixed32": FieldDescriptorProto.TYPE_SFIXED32,
    "sfixed64": FieldDescriptorProto.TYPE_SFIXED64,
    "sint32": FieldDescriptorProto.TYPE_SINT32,
    "sint64": FieldDescriptorProto.TYPE_SINT64,
}
LABELS: dict[Any, int] = {
    ast.FieldCardinality.REQUIRED: FieldDescriptorProto.LABEL_REQUIRED,
    ast.FieldCardinality.REPEATED: FieldDescriptorProto.LABEL_REPEATED,
}


class _Strict:
    """Listens to the parser, which would else print what is wrong and go on."""

    def syntaxError(self, recognizer: Any, symbol: Any, line: int, column: int, said: str, error: Any) -> NoReturn:
        raise SchemaError(f"the .proto text is wrong in line {line}, column {column + 1}: {said[:120]}")

    def reportAmbiguity(self, *told: Any) -> None:
        """How the parser found its way is not ours to know."""

    reportAttemptingFullContext = reportContextSensitivity = reportAmbiguity


def file_descriptor(text: str, name: str = "schema.proto") -> FileDescriptorProto:
    """The descriptor of a .proto text; raises SchemaError, naming the line."""
    try:
        parsed = Parser(setup_lexer=_strictly, setup_parser=_strictly).parse(text)
    except SchemaError:
        raise
    except Exception as error:  # whatever a generated parser raises for input it did not foresee
        raise SchemaError(f"the .proto text cannot be read: {type(error).__name__}: {error}") from None
    if parsed.edition is not None:
        raise SchemaError(f"the .proto text is of the edition {parsed.edition}; proto2 and proto3 are read")
    found = FileDescriptorProto(name=name, syntax=parsed.syntax or "proto2")
    for element in parsed.file_elements:
        if isinstance(element, ast.Package):
            found.package = element.name
        elif isinstance(element, ast.Import):
            if element.public:
                found.public_dependency.append(len(found.dependency))
            found.dependency.append(element.name)
        elif isinstance(element, ast.Message):
            _message(found.message_type.add(), element, found.syntax)
        elif isinstance(element, ast.Enum):
            _enum(found.enum_type.add(), element)
    return found


def _strictly(part: Any) -> None:
    part.removeErrorListeners()
    part.addErrorListener(_Strict())


def _message(target: DescriptorProto, source: ast.Message | ast.Group, syntax: str) -> None:
    target.name = source.name
    optional: list[FieldDescriptorProto] = []
    maps: list[ast.MapField] = []
    for element in source.elements:
        if isinstance(element, ast.Field):
            field = _field(target.field.add(), element)
            if syntax == "proto3" and element.cardinality is ast.FieldCardinality.OPTIONAL:
                optional.append(field)
        elif isinstance(element, ast.MapField):
            entry = f"{_camel(element.name)}Entry"
            _field(target.field.add(), ast.Field(element.name, element.number, entry, ast.FieldCardinality.REPEATED))
            maps.append(element)
        elif isinstance(element, ast.OneOf):
            _oneof(target, element, syntax)
        elif isinstance(element, ast.Group):
            _group(target, element, syntax)
        elif isinstance(element, ast.Message):
            _message(target.nested_type.add(), element, syntax)
        elif isinstance(element, ast.Enum):
            _enum(target.enum_type.add(), element)
    for one in maps:  # behind all others: a registry's frame numbers the messages that were written as such
        _map_entry(target, one)
    for field in optional:  # a proto3 optional is a oneof of its own; these come behind all others
        field.proto3_optional = True
        field.oneof_index = len(target.oneof_decl)
        target.oneof_decl.add(name=f"_{field.name}")


def _field(target: FieldDescriptorProto, source: ast.Field) -> FieldDescriptorProto:
    target.name, target.number = source.name, source.number
    target.label = LABELS.get(source.cardinality, FieldDescriptorProto.LABEL_OPTIONAL)
    _typed(target, source.type)
    for option in source.options:
        if option.name == "packed":
            target.options.packed = bool(option.value)
        elif option.name == "json_name":
            target.json_name = str(option.value)
        elif option.name == "default":
            target.default_value = _default(option.value)
    return target


def _typed(target: FieldDescriptorProto, name: str) -> None:
    """A scalar type, or the name of one that the pool finds by the rules of scopes."""
    if name in SCALARS:
        target.type = SCALARS[name]
    else:
        target.type_name = name


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(getattr(value, "name", value))


def _map_entry(target: DescriptorProto, source: ast.MapField) -> None:
    entry = target.nested_type.add(name=f"{_camel(source.name)}Entry")
    entry.options.map_entry = True
    for name, number, kind in (("key", 1, source.key_type), ("value", 2, source.value_type)):
        _field(entry.field.add(), ast.Field(name=name, number=number, type=kind))


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _oneof(target: DescriptorProto, source: ast.OneOf, syntax: str) -> None:
    index = len(target.oneof_decl)
    target.oneof_decl.add(name=source.name)
    for element in source.elements:
        if isinstance(element, ast.Field):
            _field(target.field.add(), element).oneof_index = index
        elif isinstance(element, ast.Group):
            _group(target, element, syntax).oneof_index = index


def _group(target: DescriptorProto, source: ast.Group, syntax: str) -> FieldDescriptorProto:
    _message(target.nested_type.add(), source, syntax)
    field = target.field.add(name=source.name.lower(), number=source.number, type=FieldDescriptorProto.TYPE_GROUP)
    field.type_name = source.name
    field.label = LABELS.get(source.cardinality, FieldDescriptorProto.LABEL_OPTIONAL)
    return field


def _enum(target: EnumDescriptorProto, source: ast.Enum) -> None:
    target.name = source.name
    for element in source.elements:
        if isinstance(element, ast.EnumValue):
            target.value.add(name=element.name, number=element.number)
        elif isinstance(element, ast.Option) and element.name == "allow_alias":
            target.options.allow_alias = bool(element.value)
