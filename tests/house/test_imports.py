"""What is imported when: a broker starts fast, a command says its help at once, the plug-in costs others nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import NamedTuple

HEAVY = ("rich", "confluent_kafka", "prometheus_client", "hypothesis", "numpy", "pandas", "msgspec", "pyarrow")
BROKER_MODULES_MAX = 640
"""405 when it was set, 250 of them ours; the messages of an API load with its first request"""
BROKER_ADDITIONS_MAX = 25_000_000
"""as many additions in a loop take the same processor time: 10 million when it was set"""

PROBE = """
import json, sys, time
def add():
    began, total = time.process_time(), 0
    for number in range(1_000_000):
        total += number
    return time.process_time() - began
unit = min(add() for _ in range(3))
before = set(sys.modules)
began = time.process_time()
{work}
spent = (time.process_time() - began) / unit * 1_000_000
json.dump([sorted(set(sys.modules) - before), spent], sys.stderr)
"""


class Loaded(NamedTuple):
    modules: list[str]
    additions: float
    """its processor time, as the number of additions that take as long: the machine's speed is not in it"""

    def of(self, *packages: str) -> list[str]:
        return [name for name in self.modules if any(name == one or name.startswith(f"{one}.") for one in packages)]


def test_the_broker_is_imported_without_what_it_does_not_need():
    loaded = _loading("import penstock.broker.main")
    assert loaded.of(*HEAVY) == []
    assert loaded.of("penstock.client", "penstock.wire", "penstock.testing", "penstock.sim", "penstock.cli") == []
    assert len(loaded.modules) <= BROKER_MODULES_MAX
    assert min(loaded.additions, *_again("import penstock.broker.main", times=2)) < BROKER_ADDITIONS_MAX


def test_help_is_said_without_a_broker_or_a_client():
    loaded = _running("--help")
    assert loaded.of(*HEAVY, "asyncio", "penstock.broker", "penstock.client", "penstock.protocol") == []


def test_the_help_of_a_command_needs_no_client():
    loaded = _running("topic", "--help")
    assert loaded.of("confluent_kafka", "rich", "penstock.broker", "penstock.client") == []


def test_a_project_that_does_not_use_the_plugin_pays_nothing_for_it():
    loaded = _loading("import pytest; before = set(sys.modules); import penstock.testing.plugin")
    assert loaded.of(*HEAVY, "asyncio", "penstock.broker", "penstock.client", "penstock.wire", "penstock.core") == []


def test_our_own_client_needs_no_foreign_one():
    assert _loading("import penstock.wire.blocking").of(*HEAVY, "asyncio", "penstock.broker", "penstock.client") == []


def _running(*arguments: str) -> Loaded:
    return _loading(
        f"sys.argv = {['penstock', *arguments]!r}\n"
        "from penstock.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code"
    )


def _again(work: str, *, times: int) -> list[float]:
    """Processor time of more tries: a core that is shared makes a single one twice as long, the least is the truth."""
    return [_loading(work).additions for _ in range(times)]


def _loading(work: str) -> Loaded:
    """What a fresh interpreter loads for it, and the processor time that takes."""
    program = PROBE.format(work=work)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    modules, additions = json.loads(done.stderr)
    return Loaded(modules, additions)
