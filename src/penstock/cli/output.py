"""Results on stdout: JSON, or columns that line up."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any


def is_json(args: argparse.Namespace) -> bool:
    return bool(args.format == "json")


def emit(args: argparse.Namespace, result: Any, text: Callable[[], None]) -> None:
    """Prints `result` (dataclasses, lists, dicts) as JSON, or lets `text` print it for people."""
    if not is_json(args):
        text()
        return
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(result), indent=2).decode())


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Columns that line up; numbers to the right; a dash for None."""
    cells = [[_cell(value) for value in row] for row in rows]
    numeric = [all(_is_number(row[i]) for row in cells) and bool(cells) for i in range(len(headers))]
    widths = [max(len(headers[i]), *(len(row[i]) for row in cells), 0) for i in range(len(headers))]
    for row in [list(headers), *cells]:
        padded = [c.rjust(w) if right else c.ljust(w) for c, w, right in zip(row, widths, numeric, strict=True)]
        print("  ".join(padded).rstrip())


def fields(values: dict[str, Any]) -> None:
    """Name and value, one pair a line."""
    width = max((len(name) for name in values), default=0)
    for name, value in values.items():
        print(f"{name.ljust(width)}  {_cell(value)}")


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "-"
    return str(value)


def _is_number(text: str) -> bool:
    return text == "-" or text.lstrip("-").replace(".", "", 1).isdigit()
