"""Bytes that are still in a file: what a read returns, for the connection to send by copy or sendfile."""

from __future__ import annotations

from typing import NamedTuple

from penstock.base.ports import File


class Slice(NamedTuple):
    """`length` bytes of `file` from `position`. It is sent or dropped before the log may close the file:
    the log keeps a file open while `file` is referenced, so a deleted segment stays readable to a fetch in flight."""

    file: File
    position: int
    length: int

    def read(self) -> bytes:
        return self.file.pread(self.length, self.position)
