"""What the fuzzer has found, with the frames that led to it."""

from __future__ import annotations

HEX_MAX = 4_000


class Finding(AssertionError):
    def __init__(self, what: str, frames: list[bytes]) -> None:
        lines = [what, *(f"frame of {len(frame)} bytes: {frame.hex()[:HEX_MAX]}" for frame in frames)]
        super().__init__("\n".join(lines))
        self.frames = frames
