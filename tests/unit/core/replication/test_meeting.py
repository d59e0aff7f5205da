"""A follower's position is looked into once in an epoch; what could make it wrong later is still found."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.replication.fetch_session import FetchPartition
from penstock.core.replication.partition import Partition
from tests.unit.core.replication.copies import EPOCHS, append, described, leader, place

START, BYTES = 0, 1_000_000


def met(records: int = 4) -> tuple[Partition, FetchPartition]:
    """Broker 1 leads in epoch 3; broker 2 has the first two records of that epoch, and was found sound there."""
    led = leader(epoch=3)
    append(led, records)
    wanted = place(2, epoch=3, last_epoch=3)
    assert meet(led, wanted) is None and wanted.leading is led.leading
    return led, wanted


def meet(led: Partition, wanted: FetchPartition) -> tuple[int, int] | None:
    return led.meet(wanted, 2, EPOCHS[2])


def test_one_that_goes_on_in_the_leaders_epoch_is_not_looked_into_again():
    led, wanted = met()
    wanted.fetch_offset = 4
    wanted.named(3, 3, START, BYTES)
    assert wanted.leading is led.leading and meet(led, wanted) is None


@pytest.mark.parametrize(("leader_epoch", "last_epoch"), [(3, 2), (3, -1), (2, 2), (4, 4)])
def test_one_that_names_another_epoch_is(leader_epoch, last_epoch):
    _, wanted = met()
    wanted.named(leader_epoch, last_epoch, START, BYTES)
    assert wanted.leading is None


def test_one_beyond_the_leaders_end_has_left_its_history():
    led, wanted = met()
    wanted.fetch_offset = 5
    wanted.named(3, 3, START, BYTES)
    assert meet(led, wanted) == (3, 4)


def test_one_before_the_leaders_start_is_out_of_range():
    led, wanted = met()
    led.log.delete_before(3)
    with pytest.raises(KafkaError) as refusal:
        meet(led, wanted)
    assert refusal.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_broker_that_is_no_replica_any_more_is_refused_in_the_same_epoch():
    led, wanted = met()
    led.lead(described(epoch=3, version=1, isr=(1, 3))._replace(replicas=(1, 3)))
    with pytest.raises(KafkaError) as refusal:
        meet(led, wanted)
    assert refusal.value.code is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_position_of_an_epoch_that_is_over_is_refused():
    led, wanted = met()
    led.lead(described(epoch=4, version=1))
    with pytest.raises(KafkaError) as refusal:
        meet(led, wanted)
    assert refusal.value.code is ErrorCode.FENCED_LEADER_EPOCH
