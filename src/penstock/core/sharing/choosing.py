"""Which records to hand out next, where a group looks at them one by one: delayed ones in time, urgent ones first, of
each key only the first.

Only records that have been looked at can be chosen: as many as a group may have unfinished. `tag_of` reads what a
record says of itself; `chosen` picks; `next_ready_ms` says when a delayed one is due.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.sharing.partition import SharePartition
from penstock.core.sharing.states import RecordState
from penstock.core.sharing.window import Run, Tag
from penstock.records.record import Record

DELIVER_AT = "deliver-at"
"""a header: milliseconds since 1970, in decimal digits"""
PRIORITY = "priority"
"""a header: a decimal number; the highest goes first, without it a record has 0"""
_DIGITS_MAX = 15
_PRIORITY_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Rules:
    delayed: bool = False
    by_priority: bool = False
    in_key_order: bool = False

    def __bool__(self) -> bool:
        """Whether records are looked at at all."""
        return self.delayed or self.by_priority or self.in_key_order


def tag_of(record: Record, rules: Rules) -> Tag:
    """A header that cannot be read says nothing; of several, the last one counts."""
    ready_ms = priority = 0
    if rules.delayed or rules.by_priority:
        for name, value in record.headers:
            if name == DELIVER_AT and rules.delayed:
                ready_ms = max(_number(value), 0)
            elif name == PRIORITY and rules.by_priority:
                priority = max(min(_number(value), _PRIORITY_MAX), -_PRIORITY_MAX)
    return Tag(ready_ms, priority, record.key if rules.in_key_order else None)


def chosen(share: SharePartition, wall_ms: int, max_records: int) -> list[int]:
    """The offsets to hand out now, at most so many."""
    free = [run for run in _unblocked(share) if run.tag is not None and run.tag.ready_ms <= wall_ms]
    free.sort(key=_urgency)
    return [run.first for run in free[:max_records]]


def next_ready_ms(share: SharePartition, wall_ms: int) -> int | None:
    """When the next delayed record is due; None where none is waiting."""
    tags = [run.tag for run in share.window if run.state is RecordState.AVAILABLE and run.tag is not None]
    return min((tag.ready_ms for tag in tags if tag.ready_ms > wall_ms), default=None)


def next_unknown(share: SharePartition, limit: int) -> int | None:
    """The first offset whose record has to be looked at before one can be chosen."""
    for run in share.window:
        if run.state is RecordState.AVAILABLE and run.tag is None:
            return run.first if run.first < limit else None
    fresh = share.end_offset
    return fresh if fresh < limit and share.window.unfinished < share.limits.max_locks else None


def _unblocked(share: SharePartition) -> list[Run]:
    """Available records, without those whose key an earlier record has that is not done."""
    keys: set[bytes] = set()
    out: list[Run] = []
    for run in share.window:
        key = None if run.tag is None else run.tag.key
        if run.state is RecordState.AVAILABLE and (key is None or key not in keys):
            out.append(run)
        if key is not None and run.state in (RecordState.AVAILABLE, RecordState.ACQUIRED):
            keys.add(key)
    return out


def _urgency(run: Run) -> tuple[int, int]:
    assert run.tag is not None
    return -run.tag.priority, run.first


def _number(value: bytes | None) -> int:
    text = b"" if value is None else value.strip()
    digits = text[1:] if text[:1] == b"-" else text
    return int(text) if digits.isdigit() and len(digits) <= _DIGITS_MAX else 0
