"""Plays the transcripts beside this file: a command, `----`, and everything that happened.

The first line of a file may set the coordinator (`config max_size=2`). `PENSTOCK_REWRITE=1` writes down what happens
now; read the difference before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from group_commands import run
from group_driver import GroupDriver

from penstock.core.groups.config import GroupConfig

TRANSCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))
DIVIDER = "\n----\n"


def play(text: str) -> str:
    driver = GroupDriver(GroupConfig())
    blocks: list[str] = []
    for block in text.strip().split("\n\n"):
        head = block.split(DIVIDER, 1)[0]
        commands = [line for line in head.splitlines() if line and not line.startswith("#")]
        if commands and commands[0].startswith("config"):
            settings = dict(each.split("=") for each in commands[0].split()[1:])
            driver = GroupDriver(GroupConfig(**{name: int(value) for name, value in settings.items()}))
            commands = commands[1:]
        told = [run(driver, command) for command in commands]
        blocks.append(head + DIVIDER + "\n".join(told) if told else head)
    return "\n\n".join(blocks) + "\n"


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    text = path.read_text()
    told = play(text)
    if os.environ.get("PENSTOCK_REWRITE"):
        path.write_text(told)
    else:
        assert told == text


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 12
