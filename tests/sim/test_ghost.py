"""R6 and S1 as the simulator holds them: a leader counts what a copy told of its last life until it hears of the next,
and what was durable comes back, but for what was being cut."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from penstock.base.ids import TopicPartition
from penstock.sim.invariants import ghost as room
from penstock.sim.invariants.copies import Copy
from penstock.sim.invariants.ghost import Ghost
from penstock.sim.probes import PartitionProbe


class FakeLog:
    start_offset = 0
    clean_offset = None
    config = SimpleNamespace(is_compacted=False)


LOG: Any = FakeLog()


class Broker(NamedTuple):
    id: int
    host: str = "broker"
    ready: bool = True


LEADER, FOLLOWER = Broker(1), Broker(2)


def standing(end: int, watermark: int, isr: tuple[int, ...] = ()) -> PartitionProbe:
    leads, place = bool(isr), TopicPartition("t", 0)
    return PartitionProbe(
        "t-0", place, LOG, 0, end, 0, watermark, 3, leads, False, None, False, isr, isr, False, 1, 0, watermark
    )


class Scene:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.told: list[str] = []
        self.ghost = Ghost(False, lambda invariant, _: self.told.append(invariant))
        self.probes: dict[int, PartitionProbe] = {}
        monkeypatch.setattr(room, "partitions_of", lambda node: [self.probes[node.id]])
        monkeypatch.setattr(self.ghost._reading, "read_again", lambda *of: [])
        monkeypatch.setattr(self.ghost, "check_indexes", lambda *of: None)
        monkeypatch.setattr(self.ghost, "_grown", lambda where, copy, probe: setattr(copy, "end", probe.end))

    def moves(self, broker: Any, probe: PartitionProbe) -> None:
        self.ghost._moved(broker, self.ghost.copies.setdefault((broker.id, "t-0"), Copy()), probe)

    def goes(self, broker: Any, probe: PartitionProbe) -> None:
        self.probes[broker.id] = probe
        self.ghost.gone(broker, lost_power=False)

    def comes_back(self, broker: Any, probe: PartitionProbe) -> None:
        self.probes[broker.id] = probe
        self.ghost.opened(broker)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    """The follower has 8, and tells its leader; then it loses its power, and is back with 6."""
    scene = Scene(monkeypatch)
    scene.moves(FOLLOWER, standing(8, 6))
    scene.moves(LEADER, standing(8, 6, isr=(1, 2)))
    scene.comes_back(FOLLOWER, standing(6, 6))
    return scene


def test_what_a_copy_has_lost_counts_until_its_leader_hears_of_that(scene: Scene) -> None:
    """The controller has taken it out of the ISR, and a leader that is cut off has not heard of it."""
    scene.moves(LEADER, standing(8, 8, isr=(1, 2)))
    assert scene.told == []


def test_what_it_never_had_does_not(scene: Scene) -> None:
    scene.moves(LEADER, standing(9, 9, isr=(1, 2)))
    assert scene.told == ["R6"]


def test_nor_does_it_once_the_copy_has_joined_the_isr_again(scene: Scene) -> None:
    scene.moves(LEADER, standing(8, 6, isr=(1,)))
    scene.moves(LEADER, standing(8, 6, isr=(1, 2)))
    scene.moves(LEADER, standing(8, 8, isr=(1, 2)))
    assert scene.told == ["R6"]


def test_a_log_comes_back_with_all_that_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    scene.moves(FOLLOWER, standing(8, 6))
    scene.goes(FOLLOWER, standing(8, 6))
    scene.comes_back(FOLLOWER, standing(7, 6))
    assert scene.told == ["S1"]


@pytest.mark.parametrize(("end", "told"), [(7, []), (6, ["S1"])])
def test_one_that_was_being_cut_with_what_the_cut_leaves(
    monkeypatch: pytest.MonkeyPatch, end: int, told: list[str]
) -> None:
    scene = Scene(monkeypatch)
    scene.moves(FOLLOWER, standing(8, 6))
    scene.ghost.cutting[LOG] = 7
    scene.goes(FOLLOWER, standing(8, 6))
    scene.comes_back(FOLLOWER, standing(end, 6))
    assert scene.told == told


def test_who_leads_late_is_not_held_to_what_the_next_leader_has_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was paused, hears that it leads, and not yet that another does since."""
    scene = Scene(monkeypatch)
    scene.ghost.high_watermark["t-0"] = 8
    scene.moves(FOLLOWER, standing(6, 6)._replace(leads=True, epoch=3, isr=(2,)))
    assert scene.told == ["R3"]
    scene.moves(LEADER, standing(8, 8, isr=(1,))._replace(epoch=5))
    scene.moves(FOLLOWER, standing(6, 6)._replace(leads=True, epoch=4, isr=(2, 3)))
    assert scene.told == ["R3"]
