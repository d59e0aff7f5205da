"""Which processes leave their modules out of collections, and keep the memory that a task gives back."""

from __future__ import annotations

import platform
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

FAULTS = """
import ctypes, resource, sys, types
sys.modules["__main__"].__spec__ = {spec}
from penstock.pipeline.settling import keep_memory
keep_memory()

def use():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        bytearray(4_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

use()
print(use() < 1000)
"""
"""4 MB are a thousand pages."""


@pytest.mark.parametrize("worker", ["pyspark.daemon", "penstock.pipeline.daemon"])
def test_a_worker_of_sparks_leaves_them_out_once(worker: str) -> None:
    assert settled(f"types.SimpleNamespace(name={worker!r})") == "True True"


@pytest.mark.parametrize("spec", ["None", "types.SimpleNamespace(name='somebody.elses')"])
def test_no_other_process_is_touched(spec: str) -> None:
    assert settled(spec) == "False True"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to keep memory")
def test_a_worker_does_not_ask_the_system_for_the_same_memory_again_and_again() -> None:
    assert settled("types.SimpleNamespace(name='pyspark.daemon')", FAULTS) == "True"


def settled(spec: str, code: str = CODE) -> str:
    command = [sys.executable, "-c", code.format(spec=spec)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
