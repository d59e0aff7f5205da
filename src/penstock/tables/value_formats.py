"""Values in an answer: JSON as JSON, numbers as numbers, bytes as base64, each with its content type."""

from __future__ import annotations

from base64 import b64encode
from math import isfinite
from struct import Struct
from typing import Literal, get_args

import msgspec

ValueFormat = Literal["auto", "json", "utf8", "int32", "int64", "float64", "base64"]
"""auto: JSON where it is, else base64. The numbers are as Kafka's serializers write them: an int, a long, a double."""
VALUE_FORMATS: tuple[ValueFormat, ...] = get_args(ValueFormat)

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
BYTES = "application/octet-stream"

_NUMBERS = {"int32": Struct(">i"), "int64": Struct(">q"), "float64": Struct(">d")}


def value_format(name: str) -> ValueFormat:
    if name not in VALUE_FORMATS:
        raise ValueError(f"there is no value format {name!r}; there are {', '.join(VALUE_FORMATS)}")
    return name


def shown_value(form: ValueFormat, value: bytes) -> tuple[msgspec.Raw | str, str]:
    """The value as part of a JSON document, and its content type; bytes that are not of their format are base64."""
    if form in ("auto", "json") and is_json(value):
        return msgspec.Raw(value), JSON  # as it was written: no number loses a digit
    if form == "utf8":
        try:
            return value.decode(), TEXT
        except UnicodeDecodeError:
            pass
    layout = _NUMBERS.get(form)
    if layout is not None and len(value) == layout.size:
        number = layout.unpack(value)[0]
        if isfinite(number):  # JSON has no other numbers
            return msgspec.Raw(repr(number).encode()), JSON
    return b64encode(value).decode(), BYTES


def content_type(form: ValueFormat, value: bytes) -> str:
    """Of the bytes themselves: a number is shown as JSON, and is none."""
    return BYTES if form in _NUMBERS else shown_value(form, value)[1]


def is_json(value: bytes) -> bool:
    try:
        msgspec.json.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True
