"""The `penstock` command as a user types it, in this process."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest

from penstock.cli.main import main


class Shell:
    """`shell("topic", "ls")` gives the output; a command that fails fails the test unless `code` says otherwise."""

    def __init__(self, servers: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.servers = servers
        self.capfd = capfd
        self.monkeypatch = monkeypatch
        self.err = ""

    def __call__(self, *arguments: str, stdin: bytes = b"", code: int = 0) -> str:
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self.capfd.readouterr()
        found = main([*arguments, "-b", self.servers])
        out, self.err = self.capfd.readouterr()
        assert found == code, self.err
        return out

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--format", "json"))

    def lines(self, *arguments: str) -> list[Any]:
        return [json.loads(line) for line in self(*arguments, "--format", "json").splitlines()]
