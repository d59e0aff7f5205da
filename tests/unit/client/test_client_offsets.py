"""Where partitions start and end, from scripted answers of the library."""

from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaException
from confluent_kafka import KafkaError as LibraryError

from penstock.base.ids import TopicPartition
from penstock.client import Admin, ClientError, OffsetsUnknown

ZERO, ONE, TWO = (TopicPartition("hello", number) for number in range(3))


class Library:
    """A cluster whose partitions answer with these offsets, or fail with these errors, and have these leaders."""

    def __init__(self, answers: dict[int, int | LibraryError], leaders: dict[int, int]) -> None:
        self.answers = answers
        self.leaders = leaders

    def list_offsets(self, wanted, **_):
        futures = {}
        for partition in wanted:
            answer = self.answers[partition.partition]
            futures[partition] = future = Future()
            if isinstance(answer, LibraryError):
                future.set_exception(KafkaException(answer))
            else:
                future.set_result(SimpleNamespace(offset=answer))
        return futures

    def list_topics(self, **_):
        partitions = {
            number: SimpleNamespace(id=number, leader=leader, replicas=[1, 2], isrs=[1])
            for number, leader in self.leaders.items()
        }
        return SimpleNamespace(topics={"hello": SimpleNamespace(partitions=partitions)})


def offsets(answers, leaders=None, spec="earliest"):
    admin = Admin("localhost:1", timeout_s=4)
    admin._client = Library(answers, leaders or {0: 1, 1: 2, 2: 2})
    return admin.offsets([ZERO, ONE, TWO], spec)


def test_what_leaders_tell_is_returned():
    assert offsets({0: 0, 1: 5, 2: 7}) == {ZERO: 0, ONE: 5, TWO: 7}


def test_a_leader_that_does_not_answer_is_named_with_its_partitions():
    with pytest.raises(OffsetsUnknown) as caught:
        offsets({0: 3, 1: OFFSET_INVALID, 2: OFFSET_INVALID})
    assert str(caught.value) == (
        "cannot tell the offsets of hello-1, hello-2: its leader, broker 2, did not answer within 4 s"
    )
    assert caught.value.known == {ZERO: 3}


def test_a_partition_without_a_leader_is_named():
    with pytest.raises(OffsetsUnknown, match=r"hello-1: it has no leader$"):
        offsets({0: 3, 1: LibraryError(LibraryError.LEADER_NOT_AVAILABLE), 2: 4}, {0: 1, 1: -1, 2: 2})


def test_a_partition_whose_leader_is_found_only_now_had_none():
    with pytest.raises(OffsetsUnknown, match=r"hello-1: it has no leader$"):
        offsets({0: 3, 1: LibraryError(LibraryError.LEADER_NOT_AVAILABLE), 2: 4})


def test_a_leader_that_is_none_any_more_is_told_as_that():
    with pytest.raises(OffsetsUnknown, match=r"hello-1: its leader is just changing; hello-2: it has no leader$"):
        offsets({0: 3, 1: LibraryError(LibraryError.NOT_LEADER_FOR_PARTITION), 2: LibraryError(5)})


def test_a_time_behind_the_last_record_has_no_offset_and_no_answer_is_not_that():
    assert offsets({0: -1, 1: 5, 2: 7}, spec=1_000)[ZERO] == -1
    with pytest.raises(OffsetsUnknown):
        offsets({0: OFFSET_INVALID, 1: 5, 2: 7}, spec=1_000)


def test_a_refusal_is_told_as_it_is():
    with pytest.raises(ClientError) as caught:
        offsets({0: LibraryError(LibraryError.TOPIC_AUTHORIZATION_FAILED), 1: OFFSET_INVALID, 2: 0})
    assert caught.value.code == 29
