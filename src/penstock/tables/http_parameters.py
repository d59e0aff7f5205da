"""What a request asks for, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from starlette.requests import Request

from penstock.tables.entries import prefix_end
from penstock.tables.http_answers import Refusal, Served
from penstock.tables.key_formats import BASE64, KeyFormat, Span, key_format, prefix_of
from penstock.tables.limits import (
    BATCH_KEYS_MAX,
    BODY_BYTES_MAX,
    PAGE_ENTRIES_DEFAULT,
    PAGE_ENTRIES_MAX,
    WAIT_MS_MAX,
)
from penstock.tables.value_formats import ValueFormat, value_format

WAIT_MS_DEFAULT = 5_000
_NAMES = ("key_format", "value_format", "min_offsets", "wait_ms", "raw", "from", "to", "prefix", "limit", "after")


class Keys(msgspec.Struct, forbid_unknown_fields=True):
    keys: list[str]


@dataclass(frozen=True, slots=True)
class Asked:
    key_format: KeyFormat
    value_format: ValueFormat
    min_offsets: dict[int, int]
    wait_ms: int = WAIT_MS_DEFAULT
    raw: bool = False
    start: str | None = None
    end: str | None = None
    prefix: str | None = None
    limit: int = PAGE_ENTRIES_DEFAULT
    after: bytes | None = None

    def spans(self) -> list[Span]:
        if self.prefix is None:
            return self.key_format.spans(self.start, self.end)
        if self.start is not None or self.end is not None:
            raise ValueError("prefix does not go together with from and to")
        first = prefix_of(self.key_format, self.prefix)
        return [(first, prefix_end(first))]


def asked(request: Request, served: Served) -> Asked:
    if not request.scope["query_string"]:
        return Asked(served.key_format, served.value_format, {})
    given = request.query_params
    for name in given:
        if name not in _NAMES:
            raise ValueError(f"there is no parameter {name!r}; there are {', '.join(_NAMES)}")
    return Asked(
        key_format=key_format(given["key_format"]) if "key_format" in given else served.key_format,
        value_format=value_format(given["value_format"]) if "value_format" in given else served.value_format,
        min_offsets=_offsets(given.get("min_offsets", "")),
        wait_ms=_number(given, "wait_ms", WAIT_MS_DEFAULT, 0, WAIT_MS_MAX),
        raw=bool(_number(given, "raw", 0, 0, 1)),
        start=given.get("from"),
        end=given.get("to"),
        prefix=given.get("prefix"),
        limit=_number(given, "limit", PAGE_ENTRIES_DEFAULT, 1, PAGE_ENTRIES_MAX),
        after=BASE64.parse(given["after"]) if "after" in given else None,
    )


async def read_keys(request: Request) -> list[str]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            raise Refusal(413, "too_large", f"the body is more than {BODY_BYTES_MAX} bytes; ask for fewer keys")
    keys = msgspec.json.decode(body, type=Keys).keys
    if len(keys) > BATCH_KEYS_MAX:
        raise Refusal(413, "too_large", f"{len(keys)} keys are more than {BATCH_KEYS_MAX}; ask for fewer")
    return keys


def _offsets(text: str) -> dict[int, int]:
    """`0:17,3:5`: partition and offset."""
    found: dict[int, int] = {}
    for part in filter(None, text.split(",")):
        partition, colon, offset = part.partition(":")
        if not (colon and partition.isdecimal() and offset.isdecimal()):
            raise ValueError(f"min_offsets: {part!r} is not PARTITION:OFFSET")
        found[int(partition)] = int(offset)
    return found


def _number(given: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = given.get(name)
    if text is None:
        return default
    if not text.isdecimal() or not least <= int(text) <= most:
        raise ValueError(f"{name}: {text!r} is no number from {least} to {most}")
    return int(text)
