"""`penstock.testing.simulate`: a scenario of one's own against simulated brokers."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.testing import simulate
from penstock.testing.simulation import Simulation

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "simulator.md"


@pytest.mark.parametrize("script", re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE))
def test_the_scripts_of_the_guide_run(script: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr


def test_a_minute_of_waiting_takes_no_time() -> None:
    async def scenario(simulation: Simulation) -> float:
        await asyncio.sleep(60)
        return simulation.seconds

    assert simulate(scenario).result >= 60


def test_what_a_scenario_raises_comes_with_its_seed() -> None:
    async def scenario(simulation: Simulation) -> None:
        raise ValueError("the code under test is wrong")

    with pytest.raises(ValueError, match="under test") as raised:
        simulate(scenario, seed=4)
    assert "seed=4" in raised.value.__notes__[0]


def test_a_scenario_that_does_not_end_is_ended() -> None:
    async def scenario(simulation: Simulation) -> None:
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError, match="5 s of virtual time"):
        simulate(scenario, limit_s=5)


def test_a_process_of_ones_own_can_crash_at_any_await() -> None:
    ran: list[str] = []

    async def worker() -> None:
        try:
            ran.append("begun")
            await asyncio.sleep(1)
            ran.append("ended")
        finally:
            ran.append("finally")

    async def scenario(simulation: Simulation) -> None:
        simulation.start_process("worker", worker)
        await asyncio.sleep(0.5)
        simulation.crash_process("worker")
        await asyncio.sleep(5)
        assert ran == ["begun"], "a crash runs no finally"

    simulate(scenario)


def test_a_fault_that_is_unknown_is_refused() -> None:
    async def scenario(simulation: Simulation) -> None: ...

    with pytest.raises(ValueError, match="no fault 'gremlin'"):
        simulate(scenario, faults=["gremlin"])
