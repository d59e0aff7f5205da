"""Records from a stream of bytes: by a template such as '%k\\t%v\\n', or as JSON lines."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from penstock.cli.failures import Failure, Usage
from penstock.cli.record_format import unescape

CHUNK_BYTES = 65_536
RECORD_BYTES_MAX = 104_857_600
_VERB = re.compile(r"%([kvtpd%])")


@dataclass(slots=True)
class Input:
    value: bytes | None
    key: bytes | None = None
    topic: str | None = None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def records(stream: BinaryIO, template: str, *, null: bool) -> Iterator[Input]:
    """One record for every match of the template; its last literal is what ends a record."""
    pattern, end = _compile(template)
    for number, chunk in enumerate(_split(stream, end), 1):
        match = pattern.fullmatch(chunk)
        if match is None:
            raise Failure(
                f"record {number} does not follow {template!r}: {chunk[:80]!r}", "-K D is for key, D, value lines"
            )
        yield _input(match.groupdict(), null)


def _compile(template: str) -> tuple[re.Pattern[bytes], bytes]:
    parts = _VERB.split(template)
    tail = unescape(parts[-1])
    if len(parts) == 1:
        raise Usage(f"the layout {template!r} has neither %v nor %k", r"write '%k\t%v\n'")
    if not tail:
        tail = b"\n"
    out = b""
    for i, part in enumerate(parts[:-1]):
        if i % 2 == 0:
            out += re.escape(unescape(part))
        elif part == "%":
            out += b"%"
        else:
            last = i == len(parts) - 2
            out += f"(?P<{part}>.*{'' if last else '?'})".encode()
    try:
        return re.compile(out, re.DOTALL), tail
    except re.error:
        raise Usage(f"the layout {template!r} names something twice") from None


def _split(stream: BinaryIO, end: bytes) -> Iterator[bytes]:
    if end == b"\n":
        for line in stream:
            yield line.removesuffix(b"\n").removesuffix(b"\r")
        return
    rest = b""
    while chunk := stream.read(CHUNK_BYTES):
        *whole, rest = (rest + chunk).split(end)
        yield from whole
        if len(rest) > RECORD_BYTES_MAX:
            raise Failure(f"no {end!r} within {RECORD_BYTES_MAX} bytes: is that what ends a record?")
    if rest:
        yield rest


def _input(found: dict[str, bytes | None], null: bool) -> Input:
    key, value = found.get("k"), found.get("v")
    if null:
        key, value = key or None, value or None
    topic, partition, timestamp = found.get("t"), found.get("p"), found.get("d")
    try:
        return Input(
            value,
            key,
            topic.decode() if topic else None,
            int(partition) if partition else None,
            int(timestamp) if timestamp else None,
        )
    except ValueError as exc:
        raise Failure(f"a partition or timestamp is no number: {exc}") from None


def json_records(stream: BinaryIO) -> Iterator[Input]:
    """A JSON object a line, with `value` and perhaps `key`, `headers`, `partition`, `timestamp_ms`."""
    import msgspec

    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        try:
            found = msgspec.json.decode(line)
        except msgspec.DecodeError as exc:
            raise Failure(f"line {number} is not JSON: {exc}") from None
        if not isinstance(found, dict) or "value" not in found:
            raise Failure(
                f'line {number} has no "value"', 'write {"key": "k", "value": "v"}, as `consume -f json` does'
            )
        headers = found.get("headers") or []
        pairs = headers.items() if isinstance(headers, dict) else [(h["key"], _data(h, "value")) for h in headers]
        yield Input(
            _data(found, "value"),
            _data(found, "key"),
            partition=None,
            timestamp_ms=found.get("timestamp_ms"),
            headers=tuple((name, value.encode() if isinstance(value, str) else value) for name, value in pairs),
        )


def _data(found: dict[str, Any], name: str) -> bytes | None:
    import msgspec

    value = found.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        return msgspec.json.encode(value)
    return base64.b64decode(value) if found.get(f"{name}_encoding") == "base64" else value.encode()
