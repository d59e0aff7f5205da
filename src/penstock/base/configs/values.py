"""Values of configurations: text in, typed value out, and the sentence that says why a text is refused."""

from __future__ import annotations

import re

from penstock.base.configs.define import ConfigDef, ConfigType
from penstock.base.errors import ErrorCode, KafkaError

Value = bool | int | float | str | list[str] | None

_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_LIMITS = {
    ConfigType.SHORT: (-(2**15), 2**15 - 1, "a 16-bit whole number"),
    ConfigType.INT: (-(2**31), 2**31 - 1, "a 32-bit whole number"),
    ConfigType.LONG: (-(2**63), 2**63 - 1, "a 64-bit whole number"),
}


def parse(entry: ConfigDef, text: str | None) -> Value:
    """The typed value of a text. ValueError, starting with the name, where Kafka would refuse it."""
    if text is None:
        if entry.required:
            raise ValueError(f"{entry.name}: a value is required")
        return None
    trimmed = text if entry.type is ConfigType.PASSWORD else text.strip()
    value = _typed(entry, trimmed)
    fault = _fault(entry, value, trimmed)
    if fault is not None:
        raise ValueError(f"{entry.name}: {fault}")
    return value


def checked(entry: ConfigDef, text: str | None) -> Value:
    """`parse` for input from the wire: INVALID_CONFIG where the text is refused."""
    try:
        return parse(entry, text)
    except ValueError as fault:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(fault)) from None


def _typed(entry: ConfigDef, text: str) -> Value:
    kind = entry.type
    if kind in _LIMITS:
        low, high, what = _LIMITS[kind]
        if not _WHOLE.fullmatch(text) or not low <= int(text) <= high:
            raise ValueError(f"{entry.name}: {text!r} is not {what}")
        return int(text)
    if kind is ConfigType.BOOLEAN:
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{entry.name}: {text!r} is neither true nor false")
        return text.lower() == "true"
    if kind is ConfigType.DOUBLE:
        if not _DECIMAL.fullmatch(text):
            raise ValueError(f"{entry.name}: {text!r} is not a number")
        return float(text)
    if kind is ConfigType.LIST:
        return split_list(text)
    return text


def _fault(entry: ConfigDef, value: Value, text: str) -> str | None:
    if isinstance(value, list):
        fault = _list_fault(entry, value)
    elif isinstance(value, str):
        fault = _word_fault(entry, value)
    else:
        assert value is not None
        fault = _bound_fault(entry, value, text)
    if fault is None and entry.check is not None:
        fault = entry.check(text)
    return fault


def _bound_fault(entry: ConfigDef, value: float, text: str) -> str | None:
    if entry.low is not None and value < entry.low:
        return f"{text} is below {_number(entry.low)}, the smallest value allowed"
    if entry.high is not None and value > entry.high:
        return f"{text} is above {_number(entry.high)}, the largest value allowed"
    return None


def _number(bound: float) -> str:
    return str(int(bound)) if bound == int(bound) else str(bound)


def _word_fault(entry: ConfigDef, word: str) -> str | None:
    if not entry.one_of or word in entry.one_of:
        return None
    if entry.fold_case and word.lower() in (allowed.lower() for allowed in entry.one_of):
        return None
    return f"{word!r} is none of {', '.join(entry.one_of)}"


def _list_fault(entry: ConfigDef, items: list[str]) -> str | None:
    if not items:
        return None if entry.empty_ok else "the list is empty, at least one value is needed"
    if entry.unique and len(set(items)) < len(items):
        return f"{','.join(items)!r} names a value twice"
    if entry.unique and "" in items:
        return f"{','.join(items)!r} holds an empty value"
    return next((fault for fault in (_word_fault(entry, item) for item in items) if fault), None)


def split_list(text: str) -> list[str]:
    """Items of a comma-separated text, trimmed; an empty text has none."""
    text = text.strip()
    return re.split(r"\s*,\s*", text) if text else []


def text_of(value: Value) -> str | None:
    """A value as Kafka prints it: booleans in lower case, lists joined by commas, decimals as Java writes them."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _double_text(value)
    if isinstance(value, list):
        return ",".join(value)
    return str(value)


def _double_text(value: float) -> str:
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        digits = f"{value:.17e}".partition("e")
        mantissa, exponent = repr(float(digits[0])), digits[2]
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}E{int(exponent)}"


def normal_text(entry: ConfigDef, text: str | None) -> str | None:
    """The text as it is printed back after parsing: `07` is `7`, ` a , b ` is `a,b`."""
    return text_of(parse(entry, text))
