"""Regular expressions that come from clients: RE2's, which match in time linear in the text.

Python's own would let one pattern such as `(a+)+$` hold the broker's only loop for as long as its author likes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


def matches(pattern: str, text: str) -> bool:
    """Whether the whole text matches; a pattern that was not checked before and is none matches nothing."""
    compiled = _compiled(pattern)
    return not isinstance(compiled, str) and compiled.fullmatch(text) is not None


def expression_fault(pattern: str) -> str | None:
    """Why this is no pattern, or None where it is one."""
    compiled = _compiled(pattern)
    return compiled if isinstance(compiled, str) else None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    """The pattern, or the text that says why it is none."""
    try:
        return re2.compile(pattern, _OPTIONS)
    except re2.error as fault:
        said = fault.args[0] if fault.args else "it cannot be read"
        return said.decode() if isinstance(said, bytes) else str(said)
