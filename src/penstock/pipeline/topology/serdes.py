"""What `penstock.schemas.serdes` does not know of: windowed keys, and values of a type that nobody named."""

from __future__ import annotations

from struct import Struct
from typing import Any

import msgspec

from penstock.pipeline.topology.rows import Windowed
from penstock.pipeline.topology.windows import FOR_EVER
from penstock.schemas.errors import Undecodable
from penstock.schemas.serdes import Serde

_LONG = Struct(">q")


class WindowedKey:
    """As Kafka Streams writes them: the key, then the start; of sessions the key, the end, the start; 8 bytes each."""

    def __init__(self, inner: Serde[Any], *, size_ms: int | None) -> None:
        """`size_ms`: from the start to the end; None: of sessions, which are as long as they are."""
        self._inner = inner
        self._session = size_ms is None
        self._size_ms = size_ms or 0

    def encode(self, obj: Windowed | None) -> bytes | None:
        if obj is None:
            return None
        key = self._inner.encode(obj.key) or b""
        if self._session:
            return key + _LONG.pack(obj.end) + _LONG.pack(obj.start)
        return key + _LONG.pack(obj.start)

    def decode(self, data: bytes) -> Windowed:
        if len(data) < (16 if self._session else 8):
            raise Undecodable(f"{len(data)} bytes are too few for a windowed key")
        start = _LONG.unpack(data[-8:])[0]
        if self._session:
            return Windowed(self._inner.decode(data[:-16]), start, _LONG.unpack(data[-16:-8])[0])
        return Windowed(self._inner.decode(data[:-8]), start, min(start + self._size_ms, FOR_EVER))


class Guess:
    """For a sink whose type was not named: text as UTF-8, bytes as they are, int as a long, the rest as JSON."""

    def encode(self, obj: Any) -> bytes | None:
        if obj is None or isinstance(obj, bytes):
            return obj
        if isinstance(obj, str):
            return obj.encode()
        if isinstance(obj, Windowed):
            return WindowedKey(self, size_ms=0).encode(obj)
        if type(obj) is int:
            return _LONG.pack(obj)
        return msgspec.json.encode(obj)

    def decode(self, data: bytes) -> Any:
        """The likely meaning, for a look at results in a test."""
        text = data.decode(errors="replace")
        if text.isprintable() and "\ufffd" not in text:
            return text
        return _LONG.unpack(data)[0] if len(data) == 8 else data
