"""Which processes leave their modules out of collections."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import gc, sys, types
sys.modules["__main__"].__spec__ = {spec}
from penstock.pipeline.settling import settle
settle()
once = gc.get_freeze_count()
kept = [[] for _ in range(1000)]
settle()
print(once > 1000, gc.get_freeze_count() == once)
"""


@pytest.mark.parametrize("worker", ["pyspark.daemon", "penstock.pipeline.daemon"])
def test_a_worker_of_sparks_leaves_them_out_once(worker: str) -> None:
    assert settled(f"types.SimpleNamespace(name={worker!r})") == "True True"


@pytest.mark.parametrize("spec", ["None", "types.SimpleNamespace(name='somebody.elses')"])
def test_no_other_process_is_touched(spec: str) -> None:
    assert settled(spec) == "False True"


def settled(spec: str) -> str:
    command = [sys.executable, "-c", CODE.format(spec=spec)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
