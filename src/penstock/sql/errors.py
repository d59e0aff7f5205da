"""What can be wrong with a query, said so that the next step is clear."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SqlError(ValueError):
    """A query that cannot be answered. `hint` is the next step."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant, as a question."""
    names = {one.lower(): one for one in known}
    close = difflib.get_close_matches(name.lower(), names, 1, 0.6)
    return f"did you mean {names[close[0]]}?" if close else None
