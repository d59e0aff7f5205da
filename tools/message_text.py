"""Lines of Python: indentation, choices, tests turned round."""

from __future__ import annotations

INDENT = "    "


def choice(test: str, yes: list[str], no: list[str]) -> list[str]:
    if test == "True":
        return yes
    if test == "False":
        return no
    lines = [f"if {test}:", *indented(yes)]
    if len(no) == 2 and no[0].startswith("if "):
        return [*lines, f"el{no[0]}", no[1]]
    return [*lines, "else:", *indented(no)] if no else lines


def negated(test: str) -> str:
    if " >= " in test:
        return test.replace(">=", "<")
    if test.startswith("version <= "):
        return test.replace("<=", ">")
    return test.replace("==", "!=") if "==" in test else f"not {test}"


def indented(lines: list[str], depth: int = 1) -> list[str]:
    return [INDENT * depth + line for line in lines]


def import_of(module: str, names: set[str]) -> list[str]:
    line = f"from {module} import {', '.join(sorted(names))}"
    if len(line) <= 120:
        return [line]
    return [f"from {module} import (", *(f"{INDENT}{name}," for name in sorted(names)), ")"]
