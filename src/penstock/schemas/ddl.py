"""Spark's DDL (`id BIGINT NOT NULL, tags ARRAY<STRING>`) to Arrow, without Spark.

| Spark | Arrow | | Spark | Arrow |
|---|---|---|---|---|
| BOOLEAN | bool | | STRING, VARCHAR(n), CHAR(n) | string |
| TINYINT/BYTE, SMALLINT/SHORT | int8, int16 | | BINARY | binary |
| INT/INTEGER, BIGINT/LONG | int32, int64 | | DATE | date32 |
| FLOAT/REAL, DOUBLE | float, double | | TIMESTAMP(_LTZ), TIMESTAMP_NTZ | timestamp us with UTC, without a zone |
| DECIMAL/DEC/NUMERIC(p, s) | decimal128 | | ARRAY<>, MAP<,>, STRUCT<:> | list, map, struct |
"""

from __future__ import annotations

import re
from typing import NoReturn

import pyarrow as pa

from penstock.schemas.errors import SchemaError

TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|('(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\")|(\w+)|([<>(),:]))")

SCALARS: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "tinyint": pa.int8(),
    "short": pa.int16(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
DECIMALS = ("decimal", "dec", "numeric")
DECIMAL_DIGITS = 38


def arrow_type(ddl: str) -> pa.DataType:
    """The type that a DDL text describes: a struct for a list of columns, or the one type that it names."""
    parser = _Parser(ddl)
    if parser.is_one_type():
        kind = parser.kind()
    else:
        kind = pa.struct(parser.fields(end=None))
    parser.expect_end()
    return kind


def ddl_of(kind: pa.DataType | pa.Schema) -> str:
    """The DDL of an Arrow type that Spark knows; of a struct, its columns."""
    if isinstance(kind, pa.Schema):
        kind = pa.struct(list(kind))
    if pa.types.is_struct(kind):
        return ", ".join(f"{_quoted(one.name)} {_written(one.type)}{_null(one)}" for one in kind)
    return _written(kind)


def _written(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{_quoted(one.name)}: {_written(one.type)}{_null(one)}' for one in kind)}>"
    if pa.types.is_map(kind):
        return f"MAP<{_written(kind.key_type)}, {_written(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{_written(kind.value_type)}>"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ"
    plain = pa.string() if pa.types.is_large_string(kind) or pa.types.is_null(kind) else kind
    for name in ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date"):
        if SCALARS[name] == plain:
            return name.upper()
    raise SchemaError(f"Spark has no type for {kind}")


def _quoted(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else f"`{name.replace('`', '``')}`"


def _null(field: pa.Field) -> str:
    return "" if field.nullable else " NOT NULL"


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        self.at = 0
        position = 0
        body = text.rstrip()
        while position < len(body):
            found = TOKEN.match(body, position)
            if found is None:
                raise SchemaError(f"unexpected {body[position:].lstrip()[:10]!r} in the schema {text!r}")
            self.tokens.append(found.group().strip())
            position = found.end()

    def is_one_type(self) -> bool:
        """Whether the text is a type alone: `BIGINT`, `ARRAY<INT>`, `DECIMAL(9, 2)`."""
        return len(self.tokens) == 1 or self._peek(1) in ("<", "(")

    def fields(self, end: str | None) -> list[pa.Field]:
        found: list[pa.Field] = []
        while self._peek() != end:
            if found:
                self._expect(",")
            found.append(self._field())
        names = [one.name for one in found]
        for name in names:
            if names.count(name) > 1:
                raise SchemaError(f"the column {name!r} is named twice in the schema {self.text!r}")
        return found

    def _field(self) -> pa.Field:
        name = self._next("a column's name")
        if name.startswith("`"):
            name = name[1:-1].replace("``", "`")
        if self._peek() == ":":
            self.at += 1
        kind = self.kind()
        nullable = True
        if self._word() == "not":
            self.at += 1
            self._expect("null")
            nullable = False
        if self._word() == "comment":
            self.at += 2
        return pa.field(name, kind, nullable)

    def kind(self) -> pa.DataType:
        name = self._next("a type").lower()
        if name in SCALARS:
            return SCALARS[name]
        if name in DECIMALS:
            return self._decimal()
        if name in ("varchar", "char"):
            self._numbers(1)
            return pa.string()
        if name == "array":
            self._expect("<")
            inner = self.kind()
            self._expect(">")
            return pa.list_(inner)
        if name == "map":
            self._expect("<")
            key = self.kind()
            self._expect(",")
            value = self.kind()
            self._expect(">")
            return pa.map_(key, value)
        if name == "struct":
            self._expect("<")
            fields = self.fields(end=">")
            self._expect(">")
            return pa.struct(fields)
        raise SchemaError(f"Spark has no type {name!r} (in the schema {self.text!r})")

    def _decimal(self) -> pa.DataType:
        if self._peek() != "(":
            return pa.decimal128(10, 0)
        numbers = self._numbers(2)
        digits, scale = numbers[0], numbers[1] if len(numbers) > 1 else 0
        if not 1 <= digits <= DECIMAL_DIGITS or scale > digits:
            raise SchemaError(f"DECIMAL({digits}, {scale}): 1 to {DECIMAL_DIGITS} digits, the scale within them")
        return pa.decimal128(digits, scale)

    def _numbers(self, most: int) -> list[int]:
        self._expect("(")
        found: list[int] = []
        while self._peek() != ")":
            if found:
                self._expect(",")
            word = self._next("a number")
            if not word.isdigit() or len(found) == most:
                self._unexpected(word)
            found.append(int(word))
        self._expect(")")
        return found or self._unexpected(")")

    def expect_end(self) -> None:
        if self.at != len(self.tokens):
            self._unexpected(self.tokens[self.at])

    def _peek(self, ahead: int = 0) -> str | None:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else None

    def _word(self) -> str | None:
        token = self._peek()
        return token.lower() if token else None

    def _next(self, wanted: str) -> str:
        token = self._peek()
        if token is None:
            raise SchemaError(f"{wanted} is missing at the end of the schema {self.text!r}")
        self.at += 1
        return token

    def _expect(self, wanted: str) -> None:
        token = self._next(repr(wanted))
        if token.lower() != wanted:
            self._unexpected(token, wanted)

    def _unexpected(self, token: str, wanted: str | None = None) -> NoReturn:
        instead = f" where {wanted!r} was expected" if wanted else ""
        raise SchemaError(f"unexpected {token!r}{instead} in the schema {self.text!r}")
