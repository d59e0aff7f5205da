"""The checksum file while somebody else changes it."""

from __future__ import annotations

import errno
from random import Random

import pytest

from penstock.core.log.sums import ENTRY_BYTES, Sums
from penstock.sim.disk import SimDisk


@pytest.mark.parametrize("left", [0, ENTRY_BYTES + 7])
def test_a_file_that_is_cut_while_a_thread_reads_it_is_an_error_of_the_disk(left: int) -> None:
    disk = SimDisk(Random(1))
    written = Sums(disk, "0.sums")
    for number in range(4):
        written.append(number * 100, number, 0, 0, 100, 7)
    written.write()
    read = Sums.load(disk, "0.sums")
    disk.open("0.sums").truncate(left)
    with pytest.raises(OSError, match="shorter") as fault:
        list(read.entries(300))
    assert fault.value.errno == errno.ESTALE, "with EIO the scrubber would take a sound log for damaged"
    with pytest.raises(OSError, match="shorter"):
        read.batches()
