"""How records are printed: a template in the manner of kcat and rpk, or one of the named forms.

%v %s value   %k key   %h headers   %t topic   %p partition   %o offset   %d timestamp   %e leader epoch
%V %S value's length   %K key's length   %H number of headers   %i number of the record, from 0   %% a percent sign
%v{hex} %v{base64} %k{hex}   %d{iso} %d{strftime[%F %T]}   %h{%k=%v;}   \\n \\t \\r \\\\ \\x1e
json, jsonl   one JSON document a line        table   columns        raw   values, nothing between
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from penstock.cli.failures import Usage

if TYPE_CHECKING:
    from penstock.client import Record

Piece = Callable[["Record[bytes, bytes]", int], bytes]
Printer = Callable[["Record[bytes, bytes]", int], bytes]

_VERB = re.compile(r"%(?P<verb>[a-zA-Z%])(?:\{(?P<mod>(?:[^{}\[]|\[[^\]]*\])*)\})?")
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "\\": b"\\", "0": b"\0"}


def compile_format(text: str, null: bytes = b"") -> Printer:
    """A function from a record (and its number) to the bytes to print."""
    if text in ("json", "jsonl"):
        return lambda record, _: to_json(record) + b"\n"
    if text == "raw":
        return lambda record, _: record.value or b""
    if text == "table":
        text = r"%t  %p  %o  %d{iso}  %k  %v\n"
    pieces = list(_pieces(text, null))
    return lambda record, number: b"".join([piece(record, number) for piece in pieces])


def _pieces(text: str, null: bytes) -> list[Piece]:
    found: list[Piece] = []
    at = 0
    for match in _VERB.finditer(text):
        found.append(_literal(unescape(text[at : match.start()])))
        found.append(_verb(match["verb"], match["mod"], null))
        at = match.end()
    rest = text[at:]
    if "%" in rest:
        raise Usage(f"the format {text!r} ends in a lone '%'", "write %% for a percent sign")
    found.append(_literal(unescape(rest)))
    return found


def _literal(data: bytes) -> Piece:
    return lambda record, number: data


def _verb(verb: str, mod: str | None, null: bytes) -> Piece:
    if verb in "vs":
        return lambda record, number: _bytes(record.value, mod, null)
    if verb == "k":
        return lambda record, number: _bytes(record.key, mod, null)
    if verb == "d":
        return lambda record, number: _time(record.timestamp_ms, mod).encode()
    if verb == "h":
        return _headers(mod if mod is not None else "%k=%v,", null)
    simple: dict[str, Callable[[Any, int], object]] = {
        "t": lambda record, number: record.topic,
        "p": lambda record, number: record.partition,
        "o": lambda record, number: record.offset,
        "e": lambda record, number: record.leader_epoch if record.leader_epoch is not None else -1,
        "V": lambda record, number: -1 if record.value is None else len(record.value),
        "S": lambda record, number: -1 if record.value is None else len(record.value),
        "K": lambda record, number: -1 if record.key is None else len(record.key),
        "H": lambda record, number: len(record.headers),
        "i": lambda record, number: number,
        "%": lambda record, number: "%",
    }
    if verb not in simple:
        raise Usage(f"%{verb} means nothing in a record format", "the letters are %v %k %h %t %p %o %d %e %V %K %H %i")
    get = simple[verb]
    return lambda record, number: str(get(record, number)).encode()


def _bytes(data: bytes | None, mod: str | None, null: bytes) -> bytes:
    if data is None:
        return null
    if not mod:
        return data
    if mod == "hex":
        return data.hex().encode()
    if mod == "base64":
        return base64.b64encode(data)
    raise Usage(f"a key or value cannot be printed as {mod!r}", "choose {hex} or {base64}")


def _time(timestamp_ms: int, mod: str | None) -> str:
    if not mod or mod in ("ms", "millis"):
        return str(timestamp_ms)
    if timestamp_ms < 0:
        return "-"
    when = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    if mod == "iso":
        return iso_time(timestamp_ms) or "-"
    if mod.startswith("strftime[") and mod.endswith("]"):
        return when.astimezone().strftime(mod[9:-1])
    raise Usage(f"a timestamp cannot be printed as {mod!r}", "choose {iso}, {ms} or {strftime[%F %T]}")


def _headers(inner: str, null: bytes) -> Piece:
    def render(record: Record[bytes, bytes], number: int) -> bytes:
        out = b""
        for name, value in record.headers:
            shown = {"%k": name.encode(), "%v": null if value is None else value, "%%": b"%"}
            parts = re.split(r"(%[kv%])", inner)
            out += b"".join(shown[part] if part in shown else unescape(part) for part in parts)
        return out[:-1] if inner == "%k=%v," else out

    return render


def unescape(text: str) -> bytes:
    def one(match: re.Match[bytes]) -> bytes:
        found = match[1].decode()
        if found.startswith("x"):
            return bytes([int(found[1:], 16)])
        return _ESCAPES.get(found, match[0])

    return re.sub(rb"\\(x[0-9a-fA-F]{2}|.)", one, text.encode(), flags=re.DOTALL)


def iso_time(timestamp_ms: int) -> str | None:
    if timestamp_ms < 0:
        return None
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def to_json(record: Record[bytes, bytes]) -> bytes:
    """Text as text; what is not UTF-8 as base64, with `..._encoding` beside it. `produce -f json` reads it back."""
    import msgspec

    out: dict[str, Any] = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
    out |= {"timestamp_ms": record.timestamp_ms, "timestamp": iso_time(record.timestamp_ms)}
    out |= _text("key", record.key) | _text("value", record.value)
    out["headers"] = [{"key": name, **_text("value", value)} for name, value in record.headers]
    return msgspec.json.encode(out)


def _text(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {name: base64.b64encode(data).decode(), f"{name}_encoding": "base64"}
