"""Frames out of a stream of bytes, received in place.

`buffer()` hands out where the socket may write next, `filled(n)` says how much it wrote and gives back whole frames.
While a frame's length is unknown the buffer is a small shared one; once it is known and the frame is not all there, the
rest is received straight into a buffer of the frame's own size. So a 50 MB answer is copied once, at most 64 KiB of it
twice, and belongs to whoever keeps a view of it.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from penstock.base.limits import RECEIVE_BUFFER_BYTES
from penstock.base.ports import Buffer
from penstock.wire.errors import Violation

LENGTH_BYTES = 4
_LENGTH = Struct(">i")
TLS_ALERT = b"\x15\x03"
"""how a listener that speaks TLS begins its answer to somebody who does not."""

Allocate = Callable[[int], memoryview]
"""writable memory of so many bytes, for one frame"""


def zeroed(size: int) -> memoryview:
    return memoryview(bytearray(size))


class Inbox:
    def __init__(self, frame_bytes_max: int, allocate: Allocate = zeroed) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._allocate = allocate
        self._small = bytearray(RECEIVE_BUFFER_BYTES)
        self._held = 0
        """bytes of `_small` that hold the beginning of a frame. Invariant: never a whole frame between calls."""
        self._large: memoryview | None = None
        """the body of the one frame whose length is known and whose end has not arrived."""
        self._received = 0
        """bytes of `_large` that have arrived."""

    def buffer(self) -> memoryview:
        """Where to write next; never empty."""
        if self._large is not None:
            return self._large[self._received :]
        return memoryview(self._small)[self._held :]

    @property
    def missing_bytes(self) -> int:
        """of the frame whose length is known; 0 where there is none."""
        return 0 if self._large is None else len(self._large) - self._received

    def filled(self, count: int) -> list[Buffer]:
        """`count` bytes were written into the last `buffer()`: the frames that are whole now, without their length."""
        if self._large is not None:
            self._received += count
            if self._received < len(self._large):
                return []
            frame, self._large = self._large, None
            return [frame]
        return self._split(self._held + count)

    def feed(self, data: Buffer) -> list[Buffer]:
        """The same for bytes that are already in memory."""
        frames: list[Buffer] = []
        rest = memoryview(data)
        while rest:
            room = self.buffer()
            count = min(len(room), len(rest))
            room[:count] = rest[:count]
            rest = rest[count:]
            frames += self.filled(count)
        return frames

    def _split(self, end: int) -> list[Buffer]:
        frames: list[Buffer] = []
        at = 0
        while end - at >= LENGTH_BYTES:
            (length,) = _LENGTH.unpack_from(self._small, at)
            if not LENGTH_BYTES <= length <= self._frame_bytes_max:
                hint = "; this is TLS: set security.protocol" if self._small.startswith(TLS_ALERT, at) else ""
                raise Violation(
                    f"an answer of {length} bytes; {LENGTH_BYTES} to {self._frame_bytes_max} are accepted{hint}"
                )
            start, stop = at + LENGTH_BYTES, at + LENGTH_BYTES + length
            if stop > end:
                self._enlarge(start, end, length)
                return frames
            frames.append(self._small[start:stop])
            at = stop
        self._held = end - at
        if at and self._held:
            self._small[: self._held] = self._small[at:end]
        return frames

    def _enlarge(self, start: int, end: int, length: int) -> None:
        self._large = self._allocate(length)
        self._received = end - start
        self._large[: self._received] = memoryview(self._small)[start:end]
        self._held = 0
