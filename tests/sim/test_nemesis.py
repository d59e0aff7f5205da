"""Faults as the simulator brings them: nothing is taken from a cluster but what the budget of faults knows of."""

from __future__ import annotations

from random import Random
from typing import Any

from penstock.sim.disk import SimDisk
from penstock.sim.faults import Nemesis
from penstock.sim.options import draw


class Host:
    """One that serves."""

    def __init__(self) -> None:
        self.disk = SimDisk(Random(1))
        self.up = True
        self.suspect = False


class Scene:
    """A cluster that says what was done to it."""

    network = None

    def __init__(self) -> None:
        self.did: list[str] = []
        self.loop = self

    def after(self, *_: object) -> None:
        pass

    def power_loss(self, node: Host) -> None:
        self.did.append("power_loss")
        node.suspect = False

    def start(self, node: Host) -> None:
        self.did.append("start")


def nemesis(scene: Any) -> Any:
    return Nemesis(scene, draw(1, 3, 1_000), lambda: None, [])


def test_power_that_has_not_gone_in_the_middle_of_an_operation_goes_at_last() -> None:
    scene, host = Scene(), Host()
    host.disk.power_loss_after(5)
    nemesis(scene)._restart_after_torn(host)
    assert scene.did == ["power_loss", "start"]


def test_a_broker_that_lost_its_power_and_is_back_does_not_lose_it_again() -> None:
    """It is in sync by then, and others may have crashed since."""
    scene, host = Scene(), Host()
    nemesis(scene)._restart_after_torn(host)
    assert scene.did == ["start"]


def test_a_disk_is_cycled_once_for_a_sync_that_failed() -> None:
    scene, host = Scene(), Host()
    host.suspect = True
    faults = nemesis(scene)
    faults._cycle(host)
    assert scene.did == ["power_loss"]
    faults._cycle(host)
    assert scene.did == ["power_loss"]
