"""Reads that the page cache does not hold: found out without waiting, and done in a thread.

`preadv` with RWF_NOWAIT tells whether a page is in memory. Where it is not, a job reads the piece once; after that it
is in the cache, and sending it does not hold the loop.
"""

from __future__ import annotations

import os
from functools import partial

from penstock.base.ports import Jobs
from penstock.base.slices import Slice
from penstock.broker.network.reply import Parts, Reply

_WORTH_A_LOOK_BYTES = 16_384
"""a shorter piece is what was just appended, or a single page that read-ahead brings"""
_PROBE_BYTES = 131_072
"""the kernel reads ahead about as much: one look in each stretch"""
_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)


def warmed(jobs: Jobs, parts: Parts) -> Parts | Reply:
    """The same parts at once, or once they are in memory."""
    cold = [part for part in parts if type(part) is Slice and part.length >= _WORTH_A_LOOK_BYTES and is_cold(part)]
    if not cold:
        return parts
    reply = Reply()
    jobs.run(partial(_read_all, cold), lambda _: None if reply.done else reply.complete(parts))
    return reply


def is_cold(piece: Slice) -> bool:
    if not _NOWAIT or piece.file.fileno() < 0:
        return False
    probe = bytearray(1)
    end = piece.position + piece.length - 1
    for position in (*range(piece.position, end, _PROBE_BYTES), end):
        try:
            os.preadv(piece.file.fileno(), [probe], position, _NOWAIT)
        except BlockingIOError:
            return True
        except OSError:
            return False  # a file system that cannot tell: read as it comes
    return False


def _read_all(pieces: list[Slice]) -> None:
    for piece in pieces:
        for position in range(piece.position, piece.position + piece.length, _PROBE_BYTES):
            piece.file.pread(min(_PROBE_BYTES, piece.position + piece.length - position), position)
