"""What a slot keeps: the state of its keys, how far time has come, and which keys are to be woken when.

Timers are hints. A key is listed under a time no later than the one it wants to be woken at; its own record knows that
one. So a timer that moves on, as a session's does with every row, costs nothing until its hint has come.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final

from penstock.pipeline.execution.errors import StateRefused
from penstock.pipeline.execution.packets import Clocks
from penstock.pipeline.execution.store import Store

EXACT_HINTS: Final = 1024
"""Of a node and slot: with more times than these, a hint may stand a sixteenth of the way too early."""
CHUNK_KEYS: Final = 4096
"""In one list of keys to be woken."""
_HEADER: Final = b"h"
_KEY: Final = Struct(">ci")
_TIMERS: Final = Struct(">ciqi")
_FORMAT: Final = 1


class KeyRecord:
    """A `KeyState` in memory while its key is worked on."""

    __slots__ = ("_entries", "_loaded", "_of", "_store", "blob", "hint", "key", "wake")

    def __init__(self, store: Store, key: bytes, of: bytes, data: bytes | None) -> None:
        self._store, self._of = store, of
        self.key = key
        self.blob: bytes | None = None
        self.wake: int | None = None
        self.hint: int | None = None
        """The time it is listed under."""
        if data is not None:
            self.blob, self.wake, self.hint = marshal.loads(data)
        self._loaded = (self.blob, self.wake, self.hint)
        self._entries: dict[bytes, bytes | None] = {}

    def load(self) -> bytes | None:
        return self.blob

    def save(self, blob: bytes | None) -> None:
        self.blob = blob

    def wake_at(self, at_ms: int | None) -> None:
        self.wake = at_ms

    def entry(self, name: bytes) -> bytes | None:
        if name in self._entries:
            return self._entries[name]
        return self._store.entry(self._of, name)

    def put(self, name: bytes, blob: bytes | None) -> None:
        self._entries[name] = blob

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        self.flush_entries()
        return iter(list(self._store.scan_entries(self._of)))

    def flush_entries(self) -> None:
        if self._entries:
            self._store.put_entries(self._of, self._entries.items())
            self._entries = {}

    def is_changed(self) -> bool:
        return (self.blob, self.wake, self.hint) != self._loaded

    def data(self) -> bytes | None:
        if self.blob is None and self.wake is None:
            return None
        return marshal.dumps((self.blob, self.wake, self.hint))


class SlotState:
    """Of one slot, during one batch: entered, worked on, left."""

    def __init__(self, store: Store, slot: bytes, belongs_to: tuple[str, int]) -> None:
        """`belongs_to`: digest of the definition and number of slots."""
        store.enter(slot)
        self._store, self._slot, self._belongs_to = store, slot, belongs_to
        (header,) = store.kept([_HEADER])
        self.clocks: Clocks = {}
        self._hints: dict[int, dict[int, int]] = {}
        """Node to time to the number of its lists."""
        if header is not None:
            version, belongs_to_then, self.clocks, self._hints = marshal.loads(header)
            _check(version, belongs_to_then, belongs_to)
        self._fresh: dict[tuple[int, int], list[bytes]] = {}

    def records(self, node: int, keys: Sequence[bytes]) -> list[KeyRecord]:
        names = [_KEY.pack(b"k", node) + key for key in keys]
        found = self._store.kept(names)
        return [
            KeyRecord(self._store, key, self._slot + name, data)
            for key, name, data in zip(keys, names, found, strict=True)
        ]

    def keep(self, node: int, records: Sequence[KeyRecord], now: int) -> None:
        """Write what has changed, and list what wants to be woken."""
        changes = []
        for record in records:
            record.flush_entries()
            if record.wake is not None and (record.hint is None or record.hint > record.wake):
                record.hint = self._hint(node, record.wake, now)
                self._fresh.setdefault((node, record.hint), []).append(record.key)
            if record.is_changed():
                changes.append((_KEY.pack(b"k", node) + record.key, record.data()))
        self._store.keep(changes)

    def due(self, node: int, now: int) -> Iterator[tuple[int, list[bytes]]]:
        """(hint, keys) that time has come to, in the order of their times; each is forgotten as it is given."""
        hints = self._hints.get(node, {})
        for at in sorted(hint for hint in hints if hint <= now):
            names = [_TIMERS.pack(b"t", node, at, index) for index in range(hints.pop(at))]
            keys: dict[bytes, None] = {}
            for listed in self._store.kept(names):
                keys.update(dict.fromkeys(marshal.loads(listed) if listed is not None else ()))
            self._store.keep((name, None) for name in names)
            yield at, list(keys)

    def leave(self) -> None:
        changes: list[tuple[bytes, bytes | None]] = []
        for (node, at), keys in self._fresh.items():
            hints = self._hints.setdefault(node, {})
            for start in range(0, len(keys), CHUNK_KEYS):
                index = hints.get(at, 0)
                hints[at] = index + 1
                changes.append((_TIMERS.pack(b"t", node, at, index), marshal.dumps(keys[start : start + CHUNK_KEYS])))
        changes.append((_HEADER, marshal.dumps((_FORMAT, self._belongs_to, self.clocks, self._hints))))
        self._store.keep(changes)
        self._store.leave()

    def _hint(self, node: int, wake: int, now: int) -> int:
        known = self._hints.get(node, {})
        if wake in known or (node, wake) in self._fresh or len(known) < EXACT_HINTS:
            return wake
        grain = 1 << max(((wake - now) // 16).bit_length() - 1, 0)
        return wake // grain * grain


def _check(version: int, then: tuple[str, int], now: tuple[str, int]) -> None:
    if version != _FORMAT:
        raise StateRefused(
            f"the checkpoint's state has format {version}, this release reads {_FORMAT}; start with a new one"
        )
    if then[0] != now[0]:
        raise StateRefused(
            "the pipeline's definition has changed since this checkpoint was made: its nodes or their windows are "
            "others, and so is the state they keep. Start with a new checkpoint, or bring the definition back; "
            "functions and sinks may change"
        )
    if then[1] != now[1]:
        raise StateRefused(f"this checkpoint was made with {then[1]} slots, not {now[1]}: set slots={then[1]}")
