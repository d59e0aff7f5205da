"""The bytes of a file, and what of them a loss of power leaves."""

from __future__ import annotations

from random import Random

SECTOR_BYTES = 512


class Inode:
    """The bytes of one file: as processes see them, and as they would be found after a crash."""

    __slots__ = ("durable", "modified_ms", "pending", "visible")

    def __init__(self) -> None:
        self.visible = bytearray()
        self.durable = bytearray()
        self.pending: list[tuple[int, bytes | None]] = []
        """Since the last sync, in order: (position, written bytes), or (size, None) for a truncation."""
        self.modified_ms = 0

    def sync(self) -> None:
        for position, data in self.pending:
            apply(self.durable, position, data)
        self.pending.clear()

    def crash(self, random: Random) -> None:
        """Keep of the un-synced changes what chance keeps, a sector at a time."""
        mood = random.choice(("none", "all", "prefix", "sectors", "sectors"))
        kept = random.randrange(len(self.pending) + 1) if mood == "prefix" else len(self.pending)
        for position, data in self.pending[:kept] if mood != "none" else []:
            if mood != "sectors":
                apply(self.durable, position, data)
            elif data is None:
                if random.random() < 0.7:
                    apply(self.durable, position, None)
            else:
                _apply_sectors(self.durable, position, data, random)
        self.pending.clear()
        self.visible = bytearray(self.durable)


def apply(target: bytearray, position: int, data: bytes | None) -> None:
    if data is None:
        if position <= len(target):
            del target[position:]
        else:
            target.extend(bytes(position - len(target)))
        return
    if position > len(target):
        target.extend(bytes(position - len(target)))
    target[position : position + len(data)] = data


def _apply_sectors(target: bytearray, position: int, data: bytes, random: Random) -> None:
    """Some sectors arrive. Where the file's size arrived without them, there are zeros."""
    if random.random() < 0.3:
        apply(target, max(len(target), position + len(data)), None)
    at = 0
    while at < len(data):
        length = min(SECTOR_BYTES - (position + at) % SECTOR_BYTES, len(data) - at)
        if random.random() < 0.6:
            apply(target, position + at, data[at : at + length])
        at += length
