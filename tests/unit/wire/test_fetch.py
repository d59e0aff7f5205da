from __future__ import annotations

from typing import Any

import pytest
from wire_script import Script

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.protocol.generated.fetch_request import FetchRequest
from penstock.protocol.generated.fetch_response import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from penstock.protocol.generated.list_offsets_request import ListOffsetsRequest
from penstock.protocol.generated.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from penstock.protocol.generated.metadata_request import MetadataRequest
from penstock.protocol.generated.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.protocol.generated.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from penstock.protocol.generated.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from penstock.records.builder import build_batch
from penstock.records.control import EndMarker, build_end_marker
from penstock.records.record import Record
from penstock.wire.cluster import Cluster
from penstock.wire.conversation import Ask
from penstock.wire.errors import Disconnected
from penstock.wire.fetch import Fetcher, Reset, Settings
from penstock.wire.offsets import EARLIEST, READ_COMMITTED
from penstock.wire.sessions import FetchLimits

ID = b"i" * 16
T0 = TopicPartition("t", 0)


class FakeBroker:
    """Two nodes, one partition; a test sets what the next fetches answer."""

    def __init__(self) -> None:
        self.leader, self.leader_epoch = 1, 0
        self.start_offset = 0
        self.epoch_end = -1
        self.answers: list[PartitionData | KafkaError | int] = []
        self.script = Script(self.answer)

    def answer(self, ask: Ask) -> Any:
        match ask.message:
            case MetadataRequest():
                return self._metadata()
            case ListOffsetsRequest():
                found = ListOffsetsPartitionResponse(partition_index=0, offset=self.start_offset)
                return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[found])])
            case OffsetForLeaderEpochRequest():
                end = EpochEndOffset(partition=0, leader_epoch=0, end_offset=self.epoch_end)
                return OffsetForLeaderEpochResponse(topics=[OffsetForLeaderTopicResult(topic="t", partitions=[end])])
            case FetchRequest():
                return self._fetch()
        raise AssertionError(ask)

    def _fetch(self) -> FetchResponse | None:
        if not self.answers:
            return None
        one = self.answers.pop(0)
        if isinstance(one, KafkaError):
            raise one
        if isinstance(one, int):
            return FetchResponse(error_code=one)
        return FetchResponse(session_id=5, responses=[FetchableTopicResponse(topic_id=ID, partitions=[one])])

    def _metadata(self) -> MetadataResponse:
        partition = MetadataResponsePartition(partition_index=0, leader_id=self.leader, leader_epoch=self.leader_epoch)
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=n, host="h", port=n) for n in (1, 2)],
            topics=[MetadataResponseTopic(name="t", topic_id=ID, partitions=[partition])],
        )

    def fetches(self) -> list[tuple[int | None, int]]:
        """Node and offset of each fetch that named the partition."""
        return [
            (ask.node, ask.message.topics[0].partitions[0].fetch_offset)
            for ask in self.script.asks
            if isinstance(ask.message, FetchRequest) and ask.message.topics
        ]


def records(base_offset: int, *values: bytes, epoch: int = 0, producer_id: int = -1) -> bytes:
    batch = build_batch(
        [Record.of(None, value, 0) for value in values],
        base_offset=base_offset,
        leader_epoch=epoch,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
        transactional=producer_id >= 0,
    )
    return bytes(batch)


def marker(base_offset: int, producer_id: int, *, committed: bool) -> bytes:
    end = EndMarker(committed, coordinator_epoch=0)
    return bytes(build_end_marker(end, producer_id=producer_id, producer_epoch=0, timestamp=0, base_offset=base_offset))


def values_of(fetched: list[Any]) -> list[bytes | None]:
    return [record.value for one in fetched for record in one.records()]


def fetcher_at(offset: int, **settings: Any) -> Fetcher:
    fetcher = Fetcher(Cluster([("seed", 1)]), Settings(**settings))
    fetcher.assign({T0: offset})
    return fetcher


def test_positions_move_over_whole_batches_and_records_before_them_are_left_out() -> None:
    broker = FakeBroker()
    broker.answers = [PartitionData(partition_index=0, records=records(0, b"a", b"b") + records(2, b"c"))]
    fetcher = fetcher_at(1)
    fetched = broker.script.run(fetcher.poll(1_000))
    assert values_of(fetched) == [b"b", b"c"]
    assert fetcher.positions[T0].offset == 3


def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch() -> None:
    broker = FakeBroker()
    broker.answers = [PartitionData(partition_index=0, records=records(0, b"a") + records(1, b"b")[:-1])]
    fetcher = fetcher_at(0)
    assert values_of(broker.script.run(fetcher.poll(1_000))) == [b"a"]
    assert fetcher.positions[T0].offset == 1


def test_a_batch_that_fails_its_checksum_is_refused() -> None:
    broker = FakeBroker()
    spoilt = bytearray(records(0, b"a"))
    spoilt[-1] ^= 1
    broker.answers = [PartitionData(partition_index=0, records=bytes(spoilt))]
    with pytest.raises(KafkaError, match="fails its checksum"):
        broker.script.run(fetcher_at(0).poll(1_000))


def test_the_earliest_offset_is_asked_for_before_the_first_fetch() -> None:
    broker = FakeBroker()
    broker.start_offset = 4
    broker.answers = [PartitionData(partition_index=0, records=records(4, b"e"))]
    assert values_of(broker.script.run(fetcher_at(EARLIEST).poll(1_000))) == [b"e"]
    assert broker.fetches() == [(1, 4)]


def test_an_offset_out_of_range_is_reset_by_policy() -> None:
    broker = FakeBroker()
    broker.start_offset = 10
    broker.answers = [
        PartitionData(partition_index=0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE),
        PartitionData(partition_index=0, records=records(10, b"k")),
    ]
    assert values_of(broker.script.run(fetcher_at(3, reset=Reset.EARLIEST).poll(1_000))) == [b"k"]
    assert broker.fetches() == [(1, 3), (1, 10)]


def test_an_offset_out_of_range_is_an_error_where_there_is_no_policy() -> None:
    broker = FakeBroker()
    broker.answers = [PartitionData(partition_index=0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)]
    with pytest.raises(KafkaError) as refused:
        broker.script.run(fetcher_at(3, reset=Reset.NONE).poll(1_000))
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_new_leader_is_found_and_read_from() -> None:
    broker = FakeBroker()
    broker.answers = [
        PartitionData(partition_index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        PartitionData(partition_index=0, records=records(0, b"a", epoch=1)),
    ]
    fetcher = fetcher_at(0)
    broker.script.run(fetcher.request())
    broker.leader, broker.leader_epoch = 2, 1
    assert values_of(broker.script.run(fetcher.poll(5_000))) == [b"a"]
    assert broker.fetches() == [(1, 0), (2, 0)]


def test_a_broken_connection_begins_a_new_session_after_a_pause() -> None:
    broker = FakeBroker()
    broker.answers = [Disconnected("gone"), PartitionData(partition_index=0, records=records(0, b"a"))]
    assert values_of(broker.script.run(fetcher_at(0).poll(5_000))) == [b"a"]
    assert broker.fetches() == [(1, 0), (1, 0)]


def test_a_session_that_the_broker_forgot_is_made_anew_at_once() -> None:
    broker = FakeBroker()
    broker.answers = [
        PartitionData(partition_index=0, records=records(0, b"a")),
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        PartitionData(partition_index=0, records=records(1, b"b")),
    ]
    fetcher = fetcher_at(0)
    assert values_of(broker.script.run(fetcher.poll(1_000))) == [b"a"]
    assert values_of(broker.script.run(fetcher.poll(1_000))) == [b"b"]
    sessions = [(m.session_id, m.session_epoch) for m in broker.script.asked if isinstance(m, FetchRequest)]
    assert sessions == [(0, 0), (5, 1), (0, 0)]


def test_a_log_truncated_by_a_new_leader_is_read_again_from_where_it_parts() -> None:
    broker = FakeBroker()
    broker.answers = [PartitionData(partition_index=0, records=records(0, b"a", b"b", b"c"))]
    fetcher = fetcher_at(0)
    broker.script.run(fetcher.poll(1_000))
    broker.leader, broker.leader_epoch, broker.epoch_end = 2, 1, 1
    broker.answers = [
        PartitionData(partition_index=0, error_code=ErrorCode.FENCED_LEADER_EPOCH),
        PartitionData(partition_index=0, records=records(1, b"other", epoch=1)),
    ]
    assert values_of(broker.script.run(fetcher.poll(5_000))) == [b"other"]
    assert broker.fetches() == [(1, 0), (1, 3), (2, 1)]


def test_a_truncation_is_an_error_where_there_is_no_policy() -> None:
    broker = FakeBroker()
    broker.answers = [PartitionData(partition_index=0, records=records(0, b"a", b"b"))]
    fetcher = fetcher_at(0, reset=Reset.NONE)
    broker.script.run(fetcher.poll(1_000))
    broker.leader_epoch, broker.epoch_end = 1, 1
    broker.answers = [PartitionData(partition_index=0, error_code=ErrorCode.FENCED_LEADER_EPOCH)]
    with pytest.raises(KafkaError, match="was truncated to 1"):
        broker.script.run(fetcher.poll(5_000))


def test_an_answer_to_a_position_that_was_left_since_is_dropped() -> None:
    broker = FakeBroker()
    broker.answers = [
        PartitionData(partition_index=0, records=records(0, b"a")),
        PartitionData(partition_index=0, records=records(7, b"h")),
    ]
    fetcher = fetcher_at(0)
    broker.script.run(fetcher.request())
    fetcher.seek(T0, 7)
    assert values_of(broker.script.run(fetcher.poll(1_000))) == [b"h"]


def test_what_no_retry_repairs_is_raised() -> None:
    broker = FakeBroker()
    broker.answers = [PartitionData(partition_index=0, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)]
    with pytest.raises(KafkaError, match="t-0"):
        broker.script.run(fetcher_at(0).poll(1_000))


def test_readers_of_committed_records_see_neither_aborted_ones_nor_markers() -> None:
    log = (
        records(0, b"plain")
        + records(1, b"aborted", producer_id=8)
        + records(2, b"committed", producer_id=9)
        + marker(3, 8, committed=False)
        + records(4, b"next", producer_id=8)
        + marker(5, 9, committed=True)
    )
    aborted = [AbortedTransaction(producer_id=8, first_offset=1)]
    broker = FakeBroker()
    broker.answers = [PartitionData(partition_index=0, records=log, aborted_transactions=aborted)]
    fetcher = fetcher_at(0, limits=FetchLimits(isolation=READ_COMMITTED))
    assert values_of(broker.script.run(fetcher.poll(1_000))) == [b"plain", b"committed", b"next"]
    assert fetcher.positions[T0].offset == 6


def test_other_readers_see_aborted_records_and_no_markers() -> None:
    log = records(0, b"aborted", producer_id=8) + marker(1, 8, committed=False)
    broker = FakeBroker()
    broker.answers = [PartitionData(partition_index=0, records=log)]
    assert values_of(broker.script.run(fetcher_at(0).poll(1_000))) == [b"aborted"]
