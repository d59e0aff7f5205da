"""The scenarios of the parity tests: what goes in, and what Apache Kafka Streams made of it.

A file of `recorded/` is a list of objects: name, topology (a name that the Java and the Python side both build), why
(what the outputs show, in a sentence), inputs and outputs. An output's "row" is the number of the input row, counted
from 1, that brought it about. The files are read by people: `render` writes one row a line, and is the only writer.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypedDict

DIRECTORY = Path(__file__).parent / "recorded"


class Input(TypedDict):
    topic: str
    key: str | None
    value: str | None
    timestamp: int


class Output(TypedDict):
    row: int
    topic: str
    key: Any
    value: Any
    timestamp: int


class Scenario(TypedDict):
    name: str
    topology: str
    why: str
    inputs: list[Input]
    outputs: list[Output]


def files() -> list[Path]:
    return sorted(DIRECTORY.glob("*.json"))


def load(path: Path) -> list[Scenario]:
    scenarios: list[Scenario] = json.loads(path.read_text())
    return scenarios


def load_all() -> list[Scenario]:
    return [scenario for path in files() for scenario in load(path)]


def render(scenarios: list[Scenario]) -> str:
    return "[\n" + ",\n".join(_rendered(scenario) for scenario in scenarios) + "\n]\n"


def _rendered(scenario: Scenario) -> str:
    heading = [f"    {_json(name)}: {_json(scenario[name])}" for name in ("name", "topology", "why")]
    lists = [f"    {_json(name)}: {_rows(scenario[name])}" for name in ("inputs", "outputs")]
    return "  {\n" + ",\n".join(heading + lists) + "\n  }"


def _rows(rows: list[Input] | list[Output]) -> str:
    if not rows:
        return "[]"
    return "[\n" + ",\n".join(f"      {_json(row)}" for row in rows) + "\n    ]"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
