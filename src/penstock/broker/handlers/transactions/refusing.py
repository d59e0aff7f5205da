"""What the handlers of transactions share: errors that old clients do not know, told in the words they do."""

from __future__ import annotations

from penstock.base.errors import ErrorCode


def fenced(code: ErrorCode, version: int, known_from: int) -> ErrorCode:
    """PRODUCER_FENCED, for clients that know it."""
    if code is ErrorCode.PRODUCER_FENCED and version < known_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
