"""What the workers of a share group have written down, read together: who got what, and what was confirmed."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

Place = tuple[int, int]
"""partition, offset"""


class ShareJournal:
    """All `*.journal` files of a directory; `follow` reads what was added to them."""

    def __init__(self, directory: Path) -> None:
        self.got_ns: dict[Place, list[int]] = defaultdict(list)
        """when it was given to a worker"""
        self.done_ns: dict[Place, list[int]] = defaultdict(list)
        """when a worker was told that its acknowledgement is kept"""
        self.numbers: dict[int, set[int]] = defaultdict(set)
        """by partition, the jobs that were given to anybody"""
        self.latest: dict[int, int] = {}
        """the highest of them"""
        self._directory = directory
        self._read: dict[Path, int] = {}
        """bytes of each file that were read"""

    def follow(self) -> None:
        for path in sorted(self._directory.glob("*.journal")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                whole, newline, _ = file.read().rpartition(b"\n")
            self._read[path] = self._read.get(path, 0) + len(whole) + len(newline)
            for line in whole.decode().splitlines():
                self._take(line.split())

    def _take(self, words: list[str]) -> None:
        what, at_ns, place = words[0], int(words[1]), (int(words[2]), int(words[3]))
        if what == "got":
            self.got_ns[place].append(at_ns)
            partition, number = place[0], int(words[4])
            self.numbers[partition].add(number)
            self.latest[partition] = max(self.latest.get(partition, -1), number)
        else:
            self.done_ns[place].append(at_ns)

    def is_past(self, partitions: int, number: int) -> bool:
        """Whether a job as high as that was given out, of every partition."""
        return all(self.latest.get(partition, -1) >= number for partition in range(partitions))

    def has_all(self, partitions: int, count: int) -> bool:
        return all(len(self.numbers[partition]) == count for partition in range(partitions))

    def confirmed_twice(self) -> list[Place]:
        return [place for place, times in self.done_ns.items() if len(times) > 1]

    def late_s(self) -> dict[Place, float]:
        """What was given to a worker after it was confirmed to another, and by how much."""
        late = {place: max(self.got_ns[place]) - min(times) for place, times in self.done_ns.items()}
        return {place: by_ns / 1e9 for place, by_ns in late.items() if by_ns > 0}

    def given_again(self) -> int:
        """How many were given out more than once."""
        return sum(len(times) > 1 for times in self.got_ns.values())
