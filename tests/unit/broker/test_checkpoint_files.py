"""Checkpoint files when a topic is deleted and one of the same name is made."""

from __future__ import annotations

from random import Random

from penstock.base.ids import TopicPartition
from penstock.broker.checkpoints import Checkpoints
from penstock.core.log.checkpoints import RECOVERY_POINTS, decode_offsets
from penstock.sim.disk import SimDisk

OLD, OTHER = TopicPartition("t", 0), TopicPartition("u", 0)


def recovery_points(disk: SimDisk) -> dict[TopicPartition, int]:
    return decode_offsets(disk.read(RECOVERY_POINTS))


def test_a_forgotten_partition_is_in_no_file_even_after_a_loss_of_power():
    disk = SimDisk(Random(1))
    checkpoints = Checkpoints(disk)
    checkpoints.of({RECOVERY_POINTS: {OLD: 1000, OTHER: 7}}).write()
    checkpoints.forget([OLD])
    disk.crash()
    assert recovery_points(disk) == {OTHER: 7}


def test_a_checkpoint_made_before_the_topic_was_made_again_is_not_written():
    disk = SimDisk(Random(1))
    checkpoints = Checkpoints(disk)
    late = checkpoints.of({RECOVERY_POINTS: {OLD: 1000}})
    late.write()
    checkpoints.forget([OLD])
    late.write()
    assert recovery_points(disk) == {}


def test_what_an_earlier_life_wrote_is_forgotten_too():
    disk = SimDisk(Random(1))
    Checkpoints(disk).of({RECOVERY_POINTS: {OLD: 1000}}).write()
    Checkpoints(disk).forget([OLD])
    assert recovery_points(disk) == {}
