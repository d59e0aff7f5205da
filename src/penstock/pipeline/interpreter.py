"""`penstock-python`: what Spark is told is its Python in a local session. It is this very Python, but that workers are
forked from our daemon, where Spark has no setting to say so: a setting names the daemon of tasks alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

SPARKS = "pyspark.daemon"
DAEMON = "penstock.pipeline.daemon"


def main() -> NoReturn:
    os.execv(sys.executable, [sys.executable, *replaced(sys.argv[1:])])


def replaced(arguments: Sequence[str]) -> list[str]:
    return ["-m", DAEMON, *arguments[2:]] if list(arguments[:2]) == ["-m", SPARKS] else list(arguments)


def find() -> str:
    """Where it is installed beside this Python; else this Python itself, which does as well, only slower."""
    found = Path(sys.executable).with_name("penstock-python")
    return str(found) if os.access(found, os.X_OK) else sys.executable
