"""What an error of ours says, out of the pages that Spark makes of it."""

from __future__ import annotations

import re
from typing import Final

_TOLD: Final = re.compile(r"^\s*penstock(?:\.\w+)+: (.+)", re.MULTILINE)
"""as it stands at the end of the traceback of a task, or of one of Spark's own Python processes"""


def told_in(text: str) -> str | None:
    """None where there is no error of ours. Of several the last one: it is the cause."""
    found = _TOLD.findall(text)
    return str(found[-1]).strip() if found else None
