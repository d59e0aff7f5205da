"""How much of a leader's log is committed: what is on all copies that count, and never less than was told."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.replication.isr import IsrAnswer
from tests.unit.core.replication.copies import (
    append,
    broker,
    cluster,
    described,
    fetch,
    leader,
    partition,
    place,
    sync,
    write,
)


def test_one_copy_commits_what_it_appends():
    led = partition()
    led.lead(described(isr=(1,))._replace(replicas=(1,)))
    append(led, 3)
    assert led.high_watermark == 3


def test_the_watermark_waits_for_every_copy_in_sync():
    led = leader()
    append(led, 5)
    fetch(led, 2, 5)
    assert led.high_watermark == 0
    fetch(led, 3, 4)
    assert led.high_watermark == 4
    fetch(led, 3, 5)
    assert led.high_watermark == 5


def test_it_never_goes_back_while_a_follower_asks_again_for_less():
    led = leader()
    append(led, 5)
    fetch(led, 2, 5)
    fetch(led, 3, 5)
    fetch(led, 2, 1)
    assert led.high_watermark == 5


def test_it_stands_still_with_fewer_copies_in_sync_than_must_be():
    """KIP-966: what one copy has alone may be lost with it."""
    led = leader(isr=(1, 2), min_insync_replicas=2)
    append(led, 2)
    fetch(led, 2, 2)
    assert led.high_watermark == 2
    led.lead(described(version=1, isr=(1,)))
    append(led, 2)
    assert led.high_watermark == 2
    led.lead(described(version=2, isr=(1, 2)))
    fetch(led, 2, 4)
    assert led.high_watermark == 4


def test_a_minimum_above_the_number_of_copies_counts_as_that_number():
    led = partition(min_insync_replicas=5)
    led.lead(described(isr=(1, 2))._replace(replicas=(1, 2)))
    append(led, 1, to_all=True)
    fetch(led, 2, 1)
    assert led.high_watermark == 1


def test_acks_all_is_refused_before_it_is_written_where_too_few_are_in_sync():
    led = leader(isr=(1,), min_insync_replicas=2)
    with pytest.raises(KafkaError) as refusal:
        append(led, 1, to_all=True)
    assert refusal.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert led.log.end_offset == 0
    append(led, 1)
    assert led.log.end_offset == 1, "acks=1 goes on"


def test_another_minimum_holds_at_once():
    led = leader(isr=(1,), min_insync_replicas=2)
    assert led.leading is not None
    led.leading.require(1)
    append(led, 1, to_all=True)
    assert led.log.end_offset == 1


def test_with_a_flush_for_each_message_our_own_copy_counts_only_what_is_synced():
    led = leader(flush_messages=1)
    append(led, 3)
    fetch(led, 2, 3)
    fetch(led, 3, 3)
    assert led.high_watermark == 0
    sync(led.log)
    assert led.advance() and led.high_watermark == 3


def test_a_copy_that_comes_to_lead_counts_anew_what_it_has_synced_itself():
    """As a follower it was told what others have on their disks; its own may not have it after a crash."""
    led = partition(watermark=3, flush_messages=1)
    write(led.log, 4)
    led.lead(described(epoch=1, isr=(1,)))
    assert led.high_watermark == 0
    sync(led.log)
    assert led.advance() and led.high_watermark == 4


def test_a_copy_about_to_join_holds_the_watermark_so_that_it_can():
    """Else a busy leader with two in sync would run away from the third for ever."""
    led = leader(isr=(1, 2))
    append(led, 5)
    fetch(led, 2, 5)
    change = fetch(led, 3, 5, now_ms=1_000)
    assert change is not None
    led.answered(change, IsrAnswer(ErrorCode.INELIGIBLE_REPLICA))
    append(led, 5)
    fetch(led, 2, 10, now_ms=1_100)
    assert led.high_watermark == 5
    fetch(led, 2, 10, now_ms=20_000)
    assert led.high_watermark == 10, "one that stays away is not waited for"


def test_a_new_epoch_knows_nothing_of_what_followers_had():
    """A fetch of the old epoch says nothing of a log that may have been cut since."""
    led = leader()
    append(led, 5)
    fetch(led, 2, 5)
    led.lead(described(epoch=1, version=1))
    fetch(led, 3, 5)
    assert led.high_watermark == 0


def test_a_demoted_leader_appends_nothing_and_commits_nothing():
    led = leader()
    append(led, 2)
    assert led.follow(described(2, epoch=1, version=1))
    assert not led.advance()
    with pytest.raises(KafkaError) as refusal:
        append(led)
    assert refusal.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(KafkaError) as refusal:
        led.meet(place(0, epoch=1), 3, 103)
    assert refusal.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_watermark_of_a_restart_is_within_the_log():
    led = partition(watermark=100)
    assert led.high_watermark == 0
    led.check()


def test_a_follower_at_the_end_does_not_lag_however_long_it_is_silent():
    led = leader()
    append(led, 4)
    fetch(led, 2, 4, now_ms=0)
    fetch(led, 3, 3, now_ms=0)
    led.cluster.now_ms = 30_000
    change = led.laggards()
    assert change is not None and change.members == (1, 2)
    assert led.high_watermark == 3
    assert led.answered(change, IsrAnswer(ErrorCode.NONE, 0, 1, (1, 2))) is None
    assert led.advance() and led.high_watermark == 4


def test_metadata_of_brokers_are_shared_by_all_partitions():
    shared = cluster()
    shared.brokers = {1: broker(1), 2: broker(2, fenced=True)}
    assert (shared.epoch_of(1), shared.epoch_of(2), shared.epoch_of(9)) == (101, None, None)
