"""One JSON value to what Arrow takes for a type: the exact rules, and a reason where they are broken.

| Arrow | JSON that is accepted |
|---|---|
| bool | true, false |
| integers | a number without a fraction (1, 1.0, 1e3), in range |
| floats | a number; NaN, Infinity and -Infinity as Python and Java write them |
| decimal | a number or a text of one, exactly; never rounded |
| string | a text; with JSON content: any value, kept as JSON |
| binary | a text in base64 |
| date, time, timestamp | an ISO 8601 text; no zone means UTC; a zone is dropped where the type has none |
| list, struct, map | an array, an object, an object; unknown members are ignored, missing ones are null |

Null is accepted where the field is nullable. Of a member that comes twice the last one counts.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

import msgspec
import pyarrow as pa

from penstock.schemas.errors import SchemaError, Undecodable
from penstock.schemas.json_schema import RAW

TOO_DEEP = "not JSON that is read here: it is nested too deep"
"""Python's limit, about a thousand; Arrow's reader has none for members that nobody asks for."""
Reading = Callable[[Any], Any]

MEANT: dict[type, str] = {bool: "a boolean", int: "a number", float: "a number", Decimal: "a number", str: "a text"}
FLOAT32_MAX = 3.4028234663852886e38


class Mismatch(Exception):
    """A value of the wrong type; the path grows while it rises."""

    def __init__(self, wanted: str, value: Any) -> None:
        super().__init__()
        self.path: list[str] = []
        self.said = f"{wanted} was expected, not {_shown(value)}"

    def reason(self) -> str:
        return f"{'.'.join(reversed(self.path))}: {self.said}" if self.path else self.said


class JsonRows:
    """Reads one JSON value of a type after another."""

    def __init__(self, field: pa.Field) -> None:
        self._read = reading(field.with_nullable(True))
        self._loads = msgspec.json.Decoder(float_hook=Decimal).decode if _has_decimals(field.type) else _DECODE

    def __call__(self, data: bytes) -> Any:
        """The value, as Arrow takes it; raises Undecodable."""
        try:
            return self._read(self._loads(data))
        except Mismatch as error:
            raise Undecodable(error.reason()) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return self._with_specials(data, error)
        except RecursionError:
            raise Undecodable(TOO_DEEP) from None

    def _with_specials(self, data: bytes, error: Exception) -> Any:
        """NaN and the infinities are no JSON, but Python's and Java's writers write them all the same."""
        if b"NaN" not in data and b"Infinity" not in data:
            raise Undecodable(_malformed(data, error)) from None
        try:
            return self._read(json.loads(data.decode(), parse_float=Decimal if self._loads is not _DECODE else None))
        except Mismatch as mismatch:
            raise Undecodable(mismatch.reason()) from None
        except (ValueError, RecursionError):
            raise Undecodable(_malformed(data, error)) from None


_DECODE = msgspec.json.Decoder().decode


def _malformed(data: bytes, error: Exception) -> str:
    if not data.strip():
        return "not JSON: the value is empty"
    if isinstance(error, UnicodeDecodeError):
        return f"not JSON: not UTF-8 ({error.reason})"
    return f"not JSON: {str(error).removeprefix('JSON is malformed: ')}"


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = str(value) if not isinstance(value, bool) else str(value).lower()
    return f"{MEANT.get(type(value), type(value).__name__)} ({text[:40]!r})" if isinstance(value, str) else text[:40]


def _has_decimals(kind: pa.DataType) -> bool:
    inner = [kind.field(at).type for at in range(kind.num_fields)]
    return pa.types.is_decimal(kind) or any(_has_decimals(one) for one in inner)


def reading(field: pa.Field) -> Reading:
    """The function that turns a decoded JSON value into one that Arrow takes for this field."""
    read = _json_text if field.metadata == RAW else _of_type(field.type)
    if field.nullable:
        return lambda value: None if value is None else read(value)

    def required(value: Any) -> Any:
        if value is None:
            raise Mismatch("a value", value)
        return read(value)

    return required


def _json_text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _of_type(kind: pa.DataType) -> Reading:
    types = pa.types
    if types.is_struct(kind):
        return _struct(kind)
    if types.is_map(kind):
        return _map(kind)
    if types.is_list(kind) or types.is_large_list(kind):
        return _list(kind)
    if types.is_integer(kind):
        return _integer(kind)
    if types.is_floating(kind):
        return _float32 if kind.bit_width == 32 else _float  # a half float has no place in Spark
    if types.is_timestamp(kind):
        return _zoned if kind.tz else _zoneless
    if types.is_decimal(kind):
        return _decimal(kind.precision, kind.scale)
    for known, read in SIMPLE:
        if known(kind):
            return read
    raise SchemaError(f"JSON has no values of the type {kind}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _refuse("a text", value)


def _refuse(wanted: str, value: Any) -> NoReturn:
    raise Mismatch(wanted, value)


def _bool(value: Any) -> bool:
    return value if isinstance(value, bool) else _refuse("true or false", value)


def _integer(kind: pa.DataType) -> Reading:
    signed = pa.types.is_signed_integer(kind)
    least = -(1 << (kind.bit_width - 1)) if signed else 0
    most = (1 << (kind.bit_width - (1 if signed else 0))) - 1
    wanted = f"an integer of {kind.bit_width} bits"

    def read(value: Any) -> int:
        number = value if type(value) is int else _whole(value)
        if number is None or not least <= number <= most:
            _refuse(wanted, value)
        return number

    return read


def _whole(value: Any) -> int | None:
    """1.0 and 1e3 are integers to JSON Schema, and to JavaScript."""
    if not isinstance(value, float | Decimal) or value * 0 != 0 or value % 1:
        return None
    return int(value)


def _float(value: Any) -> float:
    if isinstance(value, float):
        return value
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        _refuse("a number", value)
    try:
        return float(value)
    except OverflowError:
        _refuse("a number of 64 bits", value)


def _float32(value: Any) -> float:
    number = _float(value)
    return number if abs(number) <= FLOAT32_MAX or number * 0 != 0 else _refuse("a number of 32 bits", value)


def _decimal(digits: int, scale: int) -> Reading:
    wanted = f"a decimal of {digits} digits, {scale} of them behind the point,"
    unit = Decimal(1).scaleb(-scale)

    def read(value: Any) -> Decimal:
        if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
            _refuse(wanted, value)
        try:
            number = Decimal(value)
            exact = number.quantize(unit) if number.is_finite() else None
        except (InvalidOperation, ValueError):
            exact = None
        if exact is None or exact != number or len(exact.as_tuple().digits) > digits:
            _refuse(wanted, value)
        return exact

    return read


def _binary(value: Any) -> bytes:
    try:
        return base64.b64decode(_text(value), validate=True)
    except (binascii.Error, ValueError):
        _refuse("base64", value)


def _date(value: Any) -> date:
    try:
        return date.fromisoformat(_text(value))
    except ValueError:
        _refuse("a date (2024-12-31)", value)


def _time(value: Any) -> time:
    try:
        return time.fromisoformat(_text(value)).replace(tzinfo=None)
    except ValueError:
        _refuse("a time (23:59:59.999)", value)


def _zoned(value: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(_text(value))
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        _refuse("a timestamp (2024-12-31T23:59:59.999Z)", value)


def _zoneless(value: Any) -> datetime:
    return _zoned(value).replace(tzinfo=None)


def _null(value: Any) -> None:
    _refuse("null", value)


def _list(kind: pa.DataType) -> Reading:
    read = reading(kind.value_field)

    def read_list(value: Any) -> list[Any]:
        if not isinstance(value, list):
            _refuse("an array", value)
        found = []
        for position, one in enumerate(value):
            try:
                found.append(read(one))
            except Mismatch as error:
                error.path.append(str(position))
                raise
        return found

    return read_list


def _struct(kind: pa.DataType) -> Reading:
    members = [(kind.field(at).name, reading(kind.field(at))) for at in range(kind.num_fields)]

    def read_struct(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            _refuse("an object", value)
        found = {}
        for name, read in members:
            try:
                found[name] = read(value.get(name))
            except Mismatch as error:
                error.path.append(name)
                raise
        return found

    return read_struct


def _map(kind: pa.DataType) -> Reading:
    if not pa.types.is_string(kind.key_type):
        raise SchemaError(f"the members of a JSON object are named by texts, not by {kind.key_type}")
    read = reading(kind.item_field)

    def read_map(value: Any) -> list[tuple[str, Any]]:
        if not isinstance(value, dict):
            _refuse("an object", value)
        found = []
        for name, one in value.items():
            try:
                found.append((name, read(one)))
            except Mismatch as error:
                error.path.append(name)
                raise
        return found

    return read_map


SIMPLE: list[tuple[Callable[[pa.DataType], bool], Reading]] = [
    (pa.types.is_boolean, _bool),
    (pa.types.is_string, _text),
    (pa.types.is_large_string, _text),
    (pa.types.is_binary, _binary),
    (pa.types.is_date, _date),
    (pa.types.is_time, _time),
    (pa.types.is_null, _null),
]
