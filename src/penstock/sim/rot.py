"""Bits that turn over on cold data: bytes that were synced long ago, of which other copies are in sync.

A bit is turned within what a batch's checksum covers: nobody takes such a batch for what was written, neither a reader
nor the scrubber, which must find it and have it repaired.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from penstock.sim.cluster import Node

_SIZE_AT, _SIZE_END, _HEAD_BYTES = 8, 12, 12
_CHECKED_FROM = 21
"""of a batch: from its attributes on"""


class Flip(NamedTuple):
    node: Node
    path: str
    at: int
    was: int
    """the byte"""

    @property
    def is_mended(self) -> bool:
        """It is as it was, or its segment is gone."""
        inode = self.node.disk.files.get(self.path)
        return inode is None or len(inode.visible) <= self.at or inode.visible[self.at] == self.was


def flip(node: Node, topic: str, random: Random) -> Flip | None:
    """Turn a bit in some segment of the topic that is no longer written to; None where there is none."""
    cold = _cold_segments(node, topic)
    if not cold:
        return None
    path = random.choice(cold)
    data = node.disk.files[path].visible
    start, end = random.choice(_batches(data))
    at = random.randrange(start + _CHECKED_FROM, end)
    was = data[at]
    node.disk.flip_bit(path, 8 * at + random.randrange(8))
    return Flip(node, path, at, was)


def _cold_segments(node: Node, topic: str) -> list[str]:
    segments: dict[str, list[str]] = {}
    for path in sorted(node.disk.files):
        directory, _, name = path.rpartition("/")
        if directory.startswith(f"{topic}-") and name.endswith(".log"):
            segments.setdefault(directory, []).append(path)
    closed = [path for paths in segments.values() for path in paths[:-1]]
    return [path for path in closed if not node.disk.files[path].pending and _batches(node.disk.files[path].visible)]


def _batches(data: bytearray) -> list[tuple[int, int]]:
    """Where each begins and ends."""
    found = []
    at = 0
    while at + _HEAD_BYTES < len(data):
        end = at + _HEAD_BYTES + int.from_bytes(data[at + _SIZE_AT : at + _SIZE_END], "big")
        found.append((at, end))
        at = end
    return found
