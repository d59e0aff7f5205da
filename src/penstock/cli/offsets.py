"""The language of places in a topic, for `consume -o`, `topic trim` and `group reset`.

start  end  1234  +5 (five behind the start)  -10 (ten before the end)  @TIME  shift:+N (from the committed offset)
TIME   -1h  -90s  -2d  2026-01-01  2026-01-01T12:00:00  1767225600000 (ms)
range  PLACE..PLACE, for consume
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from penstock.cli.failures import Usage

if TYPE_CHECKING:
    from penstock.client import Admin, TopicPartition

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_RELATIVE = re.compile(r"-(?:\d+(?:\.\d+)?(?:ms|[smhdw]))+")
_SECONDS_BELOW = 100_000_000_000


@dataclass(frozen=True, slots=True)
class Place:
    """`kind` with its number: an offset, a distance, or a time in ms."""

    kind: Literal["start", "end", "offset", "after_start", "before_end", "time", "shift"]
    number: int = 0

    def resolve(
        self,
        admin: Admin,
        partitions: Iterable[TopicPartition],
        committed: Mapping[TopicPartition, int] | None = None,
    ) -> dict[TopicPartition, int]:
        """The offset in each partition, inside what it holds."""
        wanted = list(partitions)
        starts, ends = admin.offsets(wanted, "earliest"), admin.offsets(wanted, "latest")
        at_time = admin.offsets(wanted, self.number) if self.kind == "time" else {}
        found = {}
        for t in wanted:
            raw = {
                "start": starts[t],
                "end": ends[t],
                "offset": self.number,
                "after_start": starts[t] + self.number,
                "before_end": ends[t] - self.number,
                "time": at_time.get(t, -1) if at_time.get(t, -1) >= 0 else ends[t],
                "shift": (committed or {}).get(t, starts[t]) + self.number,
            }[self.kind]
            found[t] = min(max(raw, starts[t]), ends[t])
        return found


def parse_place(text: str, now_ms: int | None = None) -> Place:
    """Usage error where it is none of the language above."""
    if text in ("start", "beginning", "earliest"):
        return Place("start")
    if text in ("end", "latest"):
        return Place("end")
    if text.startswith("@"):
        return Place("time", parse_time(text[1:], now_ms))
    if text.startswith("shift:"):
        return Place("shift", _number(text, text[6:]))
    if text.startswith("+"):
        return Place("after_start", _number(text, text[1:]))
    if text.startswith("-"):
        return Place("before_end", _number(text, text[1:]))
    return Place("offset", _number(text, text))


def parse_range(text: str, now_ms: int | None = None) -> tuple[Place, Place | None]:
    """`A` or `A..B`."""
    first, dots, last = text.partition("..")
    return parse_place(first or "start", now_ms), parse_place(last or "end", now_ms) if dots else None


def parse_time(text: str, now_ms: int | None = None) -> int:
    """A time in ms: relative (-1h), a number of seconds or ms since 1970, or ISO 8601 (local time where it names no
    zone).
    """
    if _RELATIVE.fullmatch(text):
        ago = sum(float(n) * _UNITS_MS[unit] for n, unit in re.findall(r"(\d+(?:\.\d+)?)(ms|[smhdw])", text))
        return (int(time.time() * 1000) if now_ms is None else now_ms) - int(ago)
    if text.isdigit():
        number = int(text)
        return number * 1000 if number < _SECONDS_BELOW else number
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise Usage(f"{text!r} is no time", "write -1h, 2026-01-01, 2026-01-01T12:00:00 or ms since 1970") from None


def _number(whole: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise Usage(
            f"{whole!r} is no place in a topic", "write start, end, 1234, +5, -10, @-1h or @2026-01-01T00:00:00"
        ) from None
