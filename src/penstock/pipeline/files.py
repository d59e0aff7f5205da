"""A pipeline's file: a Python file that makes one `Pipeline` or several at its top level."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from penstock.pipeline.topology.streams import Pipeline


class FileError(Exception):
    """The file holds no pipeline to run; the text says what was looked for and what to do."""


def pipeline_in(path: str, name: str | None = None) -> Pipeline:
    """The one in the file; of several, the one of that name."""
    found = pipelines_in(path)
    if name is not None:
        for one in found:
            if one.name == name:
                return one
        raise FileError(f"{path} has no pipeline {name!r}; it has: {_names(found)}")
    if len(found) > 1:
        raise FileError(f"{path} has several pipelines: {_names(found)}; say which with --name")
    return found[0]


def pipelines_in(path: str) -> list[Pipeline]:
    module = _module(path)
    found = list({id(value): value for value in vars(module).values() if isinstance(value, Pipeline)}.values())
    if not found:
        raise FileError(f"{path} makes no Pipeline at its top level; write for example: pipeline = Pipeline('orders')")
    return found


def _module(path: str) -> ModuleType:
    file = Path(path)
    if not file.is_file():
        raise FileError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise FileError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    # Its neighbours can be imported, and its classes found by their names, as if it had been run.
    sys.modules[file.stem] = module
    sys.path.insert(0, str(file.parent.resolve()))
    spec.loader.exec_module(module)
    return module


def _names(found: list[Pipeline]) -> str:
    return ", ".join(one.name for one in found)
