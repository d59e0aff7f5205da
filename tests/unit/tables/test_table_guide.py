"""The Python and the first commands in the guide's page about tables run as they are printed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from penstock.cli.main import main

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "tables.md"


def test_the_script_of_the_page_runs(tmp_path, kafka_bootstrap_servers):
    (script,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    environment = {**os.environ, "PENSTOCK_BOOTSTRAP_SERVERS": kafka_bootstrap_servers}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr


def test_the_first_commands_of_the_page_run(tmp_path, monkeypatch, capfd, kafka_bootstrap_servers):
    """Without a server `penstock table get` looks into the store itself, and gives the same."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_BOOTSTRAP_SERVERS", kafka_bootstrap_servers)
    (printed, *_) = re.findall(r"^```console\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    commands = [shlex.split(line)[2:] for line in printed.splitlines() if line.startswith("$ penstock ")]
    assert [command[:2] for command in commands] == [
        ["topic", "create"],
        ["produce", "-k"],
        ["table", "serve"],
        ["table", "get"],
    ]
    for command in commands:
        if command[:2] != ["table", "serve"]:
            assert main(command) == 0, command
    assert capfd.readouterr().out.splitlines()[-1] == printed.splitlines()[-1]
