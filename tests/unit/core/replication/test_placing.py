"""What a broker tells the controller of where its copies lie, when a log of it has failed and when it is back."""

from __future__ import annotations

from penstock.base.ids import LOST_DIRECTORY
from penstock.core.metadata.image import Broker, Partition
from penstock.core.replication.placing import directory_to_tell

OWN, OTHER = b"1" * 16, b"2" * 16


def told(known: bytes, isr: tuple[int, ...], *, failed: bool, fenced: bool = False) -> bytes | None:
    described = Partition((1, 2), isr, 1, 0, 0, directories=(known, OTHER))
    brokers = {one: Broker(one, one, bytes(16), (), (), None, fenced and one == 2) for one in (1, 2)}
    return directory_to_tell(described, 1, OWN, brokers, failed=failed)


def test_a_copy_that_is_whole_and_known_to_be_here_needs_no_word():
    assert told(OWN, (1, 2), failed=False) is None


def test_a_copy_that_failed_is_lost_where_another_can_lead():
    assert told(OWN, (1, 2), failed=True) == LOST_DIRECTORY
    assert told(LOST_DIRECTORY, (1, 2), failed=True) is None


def test_the_last_copy_in_sync_is_kept_though_it_failed_for_it_can_be_read():
    assert told(OWN, (1,), failed=True) is None
    assert told(OWN, (1, 2), failed=True, fenced=True) is None
    assert told(LOST_DIRECTORY, (1,), failed=True) == OWN, "the other went while this one was given up"


def test_a_copy_that_failed_and_is_out_of_sync_already_needs_no_word():
    assert told(OWN, (2,), failed=True) is None


def test_a_copy_that_is_whole_again_is_told_to_be_here():
    assert told(LOST_DIRECTORY, (2,), failed=False) == OWN


def test_before_metadata_knew_directories_nothing_is_told():
    assert directory_to_tell(Partition((1, 2), (1, 2), 1, 0, 0), 1, OWN, {}, failed=True) is None
