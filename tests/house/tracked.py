"""The files that git tracks, as text and as syntax trees, for the rules of the house."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
GENERATED = "src/penstock/protocol/generated/"


class Function(NamedTuple):
    where: str
    """path:line"""
    name: str
    lines: int


@cache
def tracked(under: str = "", suffix: str = "") -> tuple[str, ...]:
    """Paths from the root, sorted; only what is on disk too, for a file may be on its way out."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [path for path in listed.split("\0") if path.startswith(under) and path.endswith(suffix)]
    return tuple(sorted(path for path in paths if (ROOT / path).is_file()))


def written_by_hand(under: str = "") -> tuple[str, ...]:
    """Python that people write: all but the generated messages."""
    return tuple(path for path in tracked(under, ".py") if not path.startswith(GENERATED))


@cache
def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def tree(path: str) -> ast.Module:
    return ast.parse(text(path), path)


def functions(path: str) -> Iterator[Function]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield Function(f"{path}:{node.lineno}", node.name, node.end_lineno - node.lineno + 1)


def imported(path: str) -> set[str]:
    """Full names of the modules and names that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found
