"""What answers look like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response

from penstock.tables.entries import Entry
from penstock.tables.key_formats import KeyFormat, shown
from penstock.tables.table import Table
from penstock.tables.value_formats import JSON, ValueFormat, shown_value

if TYPE_CHECKING:
    from penstock.tables.http_parameters import Asked

_TOPIC_ID_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Served:
    """A table, and how its keys and values are read and shown where a request does not say."""

    table: Table
    key_format: KeyFormat
    value_format: ValueFormat


class Refusal(Exception):
    def __init__(self, status: int, code: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.more = more

    def answer(self, headers: Mapping[str, str] | None = None) -> Response:
        body = {"error": {"code": self.code, "message": str(self), **self.more}}
        waiting = {"retry-after": "1"} if self.status == 503 else {}
        return json_answer(body, status=self.status, headers={**(headers or {}), **waiting})


def json_answer(body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(body), status, headers, JSON)


def entry_body(entry: Entry, ask: Asked) -> dict[str, Any]:
    key, key_format = shown(ask.key_format, entry.key)
    value, kind = shown_value(ask.value_format, entry.value)
    return {
        "key": key,
        "key_format": key_format,
        "value": value,
        "content_type": kind,
        "partition": entry.partition,
        "offset": entry.offset,
        "timestamp_ms": entry.timestamp_ms,
    }


def status_body(served: Served) -> dict[str, Any]:
    table = served.table
    now = table.progress
    as_of = table.as_of()
    return {
        "topic": table.topic,
        "topic_id": table.topic_id,
        "state": as_of.state,
        "ready": as_of.ready,
        "lag": as_of.lag,
        "entries": table.count(),
        "size_bytes": table.size_bytes(),
        "offsets": {str(p): offset for p, offset in sorted(as_of.offsets.items())},
        "ends": {str(p): offset for p, offset in sorted(as_of.ends.items())},
        "records_read": now.records,
        "records_without_key": now.keyless,
        "loads": now.loads,
        "cause": now.cause,
        "trouble": now.trouble,
        "cleanup_policy": table.settings.get("cleanup.policy"),
        "key_format": served.key_format.name,
        "value_format": served.value_format,
    }


def etag(table: Table, entry: Entry) -> str:
    """The record: offsets begin again where a topic is made anew, so its id is part of it."""
    return f'"{table.topic_id[:_TOPIC_ID_DIGITS]}-{entry.partition}-{entry.offset}"'


def etag_matches(condition: str | None, tag: str) -> bool:
    """If-None-Match: a list of tags, weak ones too, or a star."""
    if condition is None:
        return False
    tags = [one.strip().removeprefix("W/") for one in condition.split(",")]
    return "*" in tags or tag in tags
