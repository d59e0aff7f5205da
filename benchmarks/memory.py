"""Memory as it is on a machine that has been up for a while: in use, most of it by files that nobody reads any more.

A virtual machine gives free memory back to its host within seconds, and a write into pages that the host has to find
anew takes up to seven times as long. Pages of the page cache are not free, so they stay, and a write gets the ones that
nobody has used for longest. So free memory is filled with a sparse file, never read twice at the same place.
"""

import random
import re
from pathlib import Path

from servers import REPOSITORY

UNUSED = REPOSITORY / ".cache" / "bench" / "unused"
_UNUSED_BYTES = 2**40
_STEP_BYTES = 16 * 2**20
_BUFFER = bytearray(_STEP_BYTES)
_LEFT_FREE_BYTES = 2**30
_REUSED_BYTES = 4 * 2**30
"""read once little is free: more than that little, so that what is free afterwards was in use just before"""


class Memory:
    def __init__(self) -> None:
        # Another run may have read the beginning.
        self._at = random.randrange(_UNUSED_BYTES // _STEP_BYTES) * _STEP_BYTES

    def make_ready(self) -> None:
        while _free_bytes() > _LEFT_FREE_BYTES:
            self._read_on(_STEP_BYTES)
        self._read_on(_REUSED_BYTES)

    def _read_on(self, size_bytes: int) -> None:
        UNUSED.parent.mkdir(parents=True, exist_ok=True)
        UNUSED.touch()
        with UNUSED.open("r+b", buffering=0) as unused:
            unused.truncate(_UNUSED_BYTES)
            for _ in range(0, size_bytes, _STEP_BYTES):
                unused.seek(self._at)
                unused.readinto(_BUFFER)
                self._at = (self._at + _STEP_BYTES) % _UNUSED_BYTES


def _free_bytes() -> int:
    found = re.search(r"^MemFree: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    assert found is not None, "Linux tells how much memory is free"
    return int(found[1]) * 1024


MEMORY = Memory()
