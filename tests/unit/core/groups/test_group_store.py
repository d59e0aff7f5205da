"""What is durable: replay, transactions, groups of other types, and that compaction changes nothing (G6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.errors import DecodeError, ErrorCode, KafkaError
from penstock.core.coordinator.result import CoordinatorRecord, Now
from penstock.core.groups import records
from penstock.core.groups.config import GroupConfig
from penstock.core.groups.shard import GroupShard
from penstock.core.groups.state import RequestContext
from penstock.core.groups.store import Store
from penstock.core.groups.streams import records as streams_records
from penstock.core.groups.streams.group import StreamsGroup, StreamsMember
from penstock.protocol.generated.group_metadata_value import GroupMetadataValue
from penstock.protocol.generated.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.generated.list_groups_request import ListGroupsRequest
from penstock.protocol.generated.offset_commit_request import OffsetCommitRequest
from penstock.protocol.generated.offset_commit_value import OffsetCommitValue
from penstock.protocol.generated.offset_fetch_request import OffsetFetchRequestGroup

NOW = Now(0, 1_700_000_000_000)
V9 = RequestContext(9)
STREAMS_EPOCH = streams_records.epoch_record(StreamsGroup("streams", epoch=4))
STREAMS_MEMBER = streams_records.member_record("streams", StreamsMember("m"))


class Zeroes:
    def bytes(self, count: int) -> bytes:
        return bytes(count)

    def below(self, bound: int) -> int:
        return 0


def offset(value: int, group_id: str = "g", partition: int = 0) -> CoordinatorRecord:
    return records.offset_record(group_id, "t", partition, OffsetCommitValue(offset=value, commit_timestamp=1))


def group(generation: int, group_id: str = "g") -> CoordinatorRecord:
    return records.group_record(group_id, GroupMetadataValue(protocol_type="", protocol=None, generation=generation))


def committed(store: Store, group_id: str = "g", partition: int = 0) -> int | None:
    found = store.offset(group_id, "t", partition)
    return None if found is None else found.offset


def test_an_offset_of_a_transaction_counts_when_it_is_committed() -> None:
    store = Store()
    store.replay(offset(1), 0, -1)
    store.replay(offset(2), 1, 7)
    assert committed(store) == 1 and store.has_pending("g", "t", 0)
    store.end_transaction(7, True)
    assert committed(store) == 2 and not store.has_open_transactions("g")


def test_an_offset_of_an_aborted_transaction_never_was() -> None:
    store = Store()
    store.replay(offset(2), 0, 7)
    store.end_transaction(7, False)
    store.end_transaction(7, False)
    assert store == Store()


def test_of_two_commits_the_later_record_counts_whenever_its_transaction_ends() -> None:
    store = Store()
    store.replay(offset(1), 0, 7)
    store.replay(offset(2), 1, -1)
    store.end_transaction(7, True)
    assert committed(store) == 2


def test_a_tombstone_ends_pending_offsets_too() -> None:
    store = Store()
    store.replay(offset(1), 0, 7)
    store.replay(records.offset_tombstone("g", "t", 0), 1, -1)
    store.end_transaction(7, True)
    assert store == Store()


def test_what_is_committed_again_after_it_was_forgotten_counts() -> None:
    store = Store()
    store.replay(offset(1), 0, -1)
    store.replay(records.offset_tombstone("g", "t", 0), 1, -1)
    store.replay(offset(2), 2, -1)
    assert committed(store) == 2


def test_offsets_of_several_groups_in_turn_are_kept_apart() -> None:
    store = Store()
    for at in range(4):
        store.replay(offset(at, "gh"[at % 2], partition=at // 2), at, -1)
    assert [committed(store, group_id, partition) for partition in (0, 1) for group_id in "gh"] == [0, 1, 2, 3]


def test_everything_of_a_commit_is_told_as_it_was_written() -> None:
    store = Store()
    value = OffsetCommitValue(offset=5, leader_epoch=3, metadata="m", commit_timestamp=9, topic_id=b"i" * 16)
    store.replay(records.offset_record("g", "t", 4, value), 77, -1)
    assert store.offset("g", "t", 4) == (5, 3, "m", 9, -1, b"i" * 16, 77)
    assert list(store.offsets["g"]["t"].numbers()) == [(4, 5)]


@pytest.mark.parametrize("cut", [1, 5, 30])
def test_a_value_that_cannot_be_read_is_refused_when_it_is_replayed(cut: int) -> None:
    store = Store()
    value = OffsetCommitValue(offset=5, commit_timestamp=9, topic_id=b"i" * 16)
    whole = records.offset_record("g", "t", 4, value)
    assert whole.value is not None
    with pytest.raises(DecodeError):
        store.replay(CoordinatorRecord(whole.key, whole.value[:-cut]), 0, -1)
    assert store == Store()


def test_tombstones_for_what_is_unknown_are_no_ops() -> None:
    store = Store()
    store.replay(records.offset_tombstone("g", "t", 0), 0, -1)
    store.replay(records.group_tombstone("g"), 1, -1)
    store.replay(CoordinatorRecord(STREAMS_EPOCH.key, None), 2, -1)
    store.replay(CoordinatorRecord(b"\x7f\xff of the future", None), 3, -1)
    store.replay(CoordinatorRecord(b"\x7f\xff of the future", b"\0\0"), 4, -1)
    assert store == Store()


def test_the_key_of_very_old_brokers_is_understood() -> None:
    store = Store()
    legacy = b"\0\0" + offset(5).key[2:]
    store.replay(CoordinatorRecord(legacy, b"\0\0" + bytes(7) + b"\5" + b"\0\0" + bytes(8)), 0, -1)
    assert committed(store) == 5


CHANGES = st.lists(
    st.one_of(
        st.builds(offset, st.integers(0, 9), st.sampled_from(["g", "h"]), st.integers(0, 1)),
        st.builds(records.offset_tombstone, st.sampled_from(["g", "h"]), st.just("t"), st.integers(0, 1)),
        st.builds(group, st.integers(0, 9), st.sampled_from(["g", "h"])),
        st.builds(records.group_tombstone, st.sampled_from(["g", "h"])),
        st.sampled_from([STREAMS_EPOCH, STREAMS_MEMBER]),
        st.sampled_from([CoordinatorRecord(STREAMS_EPOCH.key, None), CoordinatorRecord(STREAMS_MEMBER.key, None)]),
    ),
    max_size=30,
)


@given(CHANGES, st.integers(0, 30), st.booleans())
def test_compaction_of_any_prefix_changes_nothing(
    log: list[CoordinatorRecord], clean: int, keeps_tombstones: bool
) -> None:
    """The cleaner takes from the first `clean` records whatever a later one of them replaces; tombstones go later."""
    last = {record.key: at for at, record in enumerate(log[:clean])}
    whole, cleaned = Store(), Store()
    for at, record in enumerate(log):
        whole.replay(record, at, -1)
        is_kept = at >= clean or (last[record.key] == at and (keeps_tombstones or record.value is not None))
        if is_kept:
            cleaned.replay(record, at, -1)
    assert whole.groups == cleaned.groups and whole.offsets == cleaned.offsets
    assert {name: set(each.keys) for name, each in whole.foreign.items()} == {
        name: set(each.keys) for name, each in cleaned.foreign.items()
    }


def adopted(*log: CoordinatorRecord) -> GroupShard:
    shard = GroupShard(GroupConfig(), Zeroes())
    for at, record in enumerate(log):
        shard.replay(record, at, -1)
    shard.loaded(NOW)
    return shard


def join(shard: GroupShard, group_id: str) -> list[CoordinatorRecord]:
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range")],
    )
    return shard.join(request, V9, 1, NOW).records


def test_a_group_of_another_type_is_kept_with_its_offsets_and_not_disturbed() -> None:
    shard = adopted(STREAMS_EPOCH, STREAMS_MEMBER, offset(5, "streams"))
    fetched = shard.fetch_offsets(OffsetFetchRequestGroup(group_id="streams", topics=None), False, 1, NOW).response
    assert fetched.topics[0].partitions[0].committed_offset == 5  # type: ignore[attr-defined]  # a response
    with pytest.raises(KafkaError) as refusal:
        join(shard, "streams")
    assert refusal.value.code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    with pytest.raises(KafkaError) as refusal:
        shard.commit_offsets(OffsetCommitRequest(group_id="streams"), V9, 1, NOW)
    assert refusal.value.code == ErrorCode.UNKNOWN_MEMBER_ID
    listed = shard.list_groups(ListGroupsRequest(), V9, 1, NOW).response
    assert [(each.group_id, each.group_type) for each in listed] == [("streams", "streams")]  # type: ignore[attr-defined]  # groups
    (deleted,) = shard.delete_groups(["streams"], V9, 1, NOW).response  # type: ignore[misc]  # a list of one
    assert deleted.error_code == ErrorCode.NON_EMPTY_GROUP


def test_an_empty_group_of_another_type_becomes_a_classic_one_by_joining() -> None:
    shard = adopted(STREAMS_EPOCH)
    first, *rest = join(shard, "streams")
    assert first == (STREAMS_EPOCH.key, None)
    assert [records.key_type(record.key) for record in rest] == [records.GROUP_METADATA]


def test_an_empty_group_of_another_type_is_deleted_with_all_that_was_written_of_it() -> None:
    shard = adopted(STREAMS_EPOCH, offset(5, "streams"))
    for at, record in enumerate(shard.delete_groups(["streams"], V9, 1, NOW).records):
        shard.replay(record, 10 + at, -1)
    assert shard.state.store == Store()
