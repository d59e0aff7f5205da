"""The short account for tests in which each key has one producer that sends 0, 1, 2, ...: no history is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from penstock.sim.check.history import Key


@dataclass(frozen=True, slots=True)
class Account:
    acked: int
    read: int
    lost: int
    """acked and never read"""
    duplicated: int
    """readings of a number that had been read before"""
    out_of_order: int
    """times that a smaller number followed a larger one, duplicates left aside"""
    phantom: int
    """numbers that were read and never sent"""

    @property
    def clean(self) -> bool:
        return not (self.lost or self.duplicated or self.out_of_order or self.phantom)


def summarize(
    acked: Mapping[Key, Sequence[int]], sent: Mapping[Key, int], read: Mapping[Key, Sequence[int]]
) -> Account:
    """`sent`: how many numbers were sent, acked or not. `read`: what one reader of all was handed, in order."""
    lost = duplicated = out_of_order = phantom = 0
    for key in {**acked, **read}:
        found = read.get(key, ())
        once = dict.fromkeys(found)
        lost += sum(number not in once for number in acked.get(key, ()))
        duplicated += len(found) - len(once)
        out_of_order += sum(after < before for before, after in pairwise(once))
        phantom += sum(not 0 <= number < sent.get(key, 0) for number in once)
    total = sum(len(numbers) for numbers in read.values())
    return Account(sum(map(len, acked.values())), total, lost, duplicated, out_of_order, phantom)
