"""A quorum of one voter: its files and first batches, byte for byte as Apache Kafka 4.3.0 has written them."""

from __future__ import annotations

from base64 import b64decode

import pytest

from penstock.base.errors import DecodeError
from penstock.base.ids import id_from_text
from penstock.core.metadata.image import Partition
from penstock.core.metadata.records import partition_record
from penstock.core.raft.batches import build_metadata_batch, read_batches
from penstock.core.raft.leader import first_records
from penstock.core.raft.retention import StoredSnapshot, outdated
from penstock.core.raft.snapshot import SnapshotId, UnknownSnapshot, decode_snapshot, encode_snapshot, snapshot_id
from penstock.core.raft.state import QuorumState
from penstock.core.raft.voters import FORMATTED, Voter, VoterEndpoint, VoterHistory
from penstock.protocol.generated.config_record import ConfigRecord
from penstock.protocol.generated.topic_record import TopicRecord
from penstock.records.batch import patch
from penstock.records.control import ControlType, build_control_batch
from tests.unit.core.raft.raft_bench import later_snapshot

KAFKA_VOTERS_SNAPSHOT = b64decode(
    "AAAAAAAAAAAAAACaAAAAAALGztLtACAAAAACAAABoeHKhCcAAAGh4cqEJ///////////////////AAAAAyoAAAAIAAAAAxYAAAAAAaHhyoQeAAAe"
    "AAACCAAAAAUKAAAAAQAAggEAAAQIAAAABm4AAAIAAAABDlmOt1iuQBKT0/MRL9rU2gILQ09OVFJPTExFUgpsb2NhbGhvc3SYtQAAAAABAAAAAAAA"
    "AAAAAAADAAAAPwAAAAACM/s7FgAgAAAAAAAAAaHhyoQuAAABoeHKhC7//////////////////wAAAAEaAAAACAAAAAQGAAAAAA=="
)
KAFKA_FIRST_BATCH = b64decode(
    "AAAAAAAAAAAAAACiAAAAAQJq7fw1ACAAAAACAAABoeHKysEAAAGh4crKwf//////////////////AAAAAzoAAAAIAAAAAiYAAAAAAAECAAAAAQAC"
    "AAAAAQAAAB4AAAIIAAAABQoAAAABAACCAQAABAgAAAAGbgAAAgAAAAEOWY63WK5AEpPT8xEv2tTaAgtDT05UUk9MTEVSCmxvY2FsaG9zdJi1AAAA"
    "AAEAAAAA"
)
KAFKA_TOPIC_BATCH = b64decode(
    "AAAAAAAAABUAAAFQAAAAAQIMn/DeAAAAAAAEAAABoeHK1yMAAAGh4crXI///////////////////AAAABTwAAAABMAECAARhLmKoMnegpqpMlrgw"
    "jyztIClKAABCAAACATYBBAACBGEuYg1yZXRlbnRpb24ubXMFMTAwMAAAkAEAAAQBggEBAwIAAAAAqDJ3oKaqTJa4MI8s7SApSgIAAAABAgAAAAEB"
    "AQAAAAEAAAAAAAAAAAIOWY63WK5AEpPT8xEv2tTaAACQAQAABgGCAQEDAgAAAAGoMnegpqpMlrgwjyztIClKAgAAAAECAAAAAQEBAAAAAQAAAAAA"
    "AAAAAg5ZjrdYrkASk9PzES/a1NoAAJABAAAIAYIBAQMCAAAAAqgyd6CmqkyWuDCPLO0gKUoCAAAAAQIAAAABAQEAAAABAAAAAAAAAAACDlmOt1iu"
    "QBKT0/MRL9rU2gAA"
)
DIRECTORY = id_from_text("DlmOt1iuQBKT0_MRL9rU2g")
ME = Voter(1, DIRECTORY, (VoterEndpoint("CONTROLLER", "localhost", 39093),))


def formatted() -> VoterHistory:
    history = VoterHistory()
    for kind, value in decode_snapshot(KAFKA_VOTERS_SNAPSHOT, "0-0").controls:
        history.learn(kind, value, FORMATTED)
    return history


def test_voters_are_read_from_a_directory_that_kafka_formatted():
    history = formatted()
    assert (history.kraft_version, history.voters, history.in_log) == (1, (ME,), False)


def first_batch(history: VoterHistory, me: Voter, epoch: int, now_ms: int) -> bytes:
    records = first_records(history, me, [me.id])
    for offset, (kind, value) in enumerate(records):
        history.learn(kind, value, offset)
    return bytes(build_control_batch(records, timestamp=now_ms, leader_epoch=epoch))


def test_the_first_batch_is_the_one_that_kafka_writes():
    assert first_batch(formatted(), ME, 1, 1794789526209) == KAFKA_FIRST_BATCH


def test_the_state_file_is_the_one_that_kafka_writes():
    assert QuorumState(leader_id=1, leader_epoch=1).encode() == (
        b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    )


def test_a_batch_of_records_is_the_one_that_kafka_writes():
    topic_id = id_from_text("qDJ3oKaqTJa4MI8s7SApSg")
    partition = Partition((1,), (1,), 1, 0, 0, (DIRECTORY,))
    records = [
        TopicRecord(name="a.b", topic_id=topic_id),
        ConfigRecord(resource_type=2, resource_name="a.b", name="retention.ms", value="1000"),
        *(partition_record(topic_id, index, partition) for index in range(3)),
    ]
    batch = build_metadata_batch(records, {"metadata.version": 30}, now_ms=1794789529379)
    patch(batch, 0, 21, 1)
    assert bytes(batch) == KAFKA_TOPIC_BATCH
    (read,) = read_batches(KAFKA_TOPIC_BATCH)
    assert (read.records, read.last_offset, read.epoch, read.timestamp) == (records, 25, 1, 1794789529379)


def kinds(batch: bytes) -> list[ControlType]:
    return [kind for one in read_batches(batch) for kind, _ in one.controls]


def test_a_later_epoch_names_the_voters_only_if_they_changed():
    history = formatted()
    first_batch(history, ME, 1, 1)
    second = first_batch(history, ME, 2, 2)
    moved = ME._replace(endpoints=(VoterEndpoint("CONTROLLER", "localhost", 1),))
    third = first_batch(history, moved, 3, 3)
    assert kinds(second) == [ControlType.LEADER_CHANGE]
    assert kinds(third) == [ControlType.LEADER_CHANGE, ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS]


def test_a_quorum_with_voters_in_its_configuration_keeps_its_older_state_file():
    before = (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],'
        b'"data_version":0}'
    )
    assert QuorumState.decode(before).encode() == before
    assert kinds(first_batch(VoterHistory((ME,)), ME, 2, 1)) == [ControlType.LEADER_CHANGE]


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"data_version":1}', b'{"data_version":2,"leaderId":1}'])
def test_a_damaged_state_file_is_refused(raw: bytes):
    with pytest.raises(DecodeError, match="quorum-state"):
        QuorumState.decode(raw)


def test_a_snapshot_of_many_records_comes_back_whole():
    records = [TopicRecord(name=f"t{at}", topic_id=at.to_bytes(16, "big")) for at in range(3000)]
    data = encode_snapshot(records, {"metadata.version": 30}, formatted().control_records(), epoch=4, now_ms=5)
    content = decode_snapshot(data, "x")
    assert content.records == records
    assert content.controls == formatted().control_records()
    assert {batch.epoch for batch in read_batches(data)} == {4}
    assert [batch.last_offset for batch in read_batches(data)] == [2, 1026, 2050, 3002, 3003]


def test_a_snapshot_that_was_cut_or_changed_is_refused():
    whole = encode_snapshot([TopicRecord(name="t", topic_id=b"t" * 16)], {}, now_ms=5)
    for cut in range(len(whole)):
        with pytest.raises(DecodeError):
            decode_snapshot(whole[:cut], "x")
    changed = bytearray(whole)
    changed[100] ^= 1
    with pytest.raises(DecodeError, match="checksum") as damage:
        decode_snapshot(changed, "x")
    assert not isinstance(damage.value, UnknownSnapshot)


@pytest.mark.parametrize(
    "value", [b"\x01\xff\x7f\x00", b"\x02\x02\x00", b"\x01\x02\x7f"], ids=["record", "frame", "version"]
)
def test_a_snapshot_of_a_later_release_is_told_from_a_damaged_one(value: bytes):
    with pytest.raises(UnknownSnapshot, match="x: "):
        decode_snapshot(later_snapshot(value), "x")


def test_a_snapshot_s_name_tells_where_it_ends():
    name = SnapshotId(22, 3).file_name
    assert name == "00000000000000000022-0000000003.checkpoint"
    assert snapshot_id(name) == SnapshotId(22, 3)
    assert snapshot_id("00000000000000000022.log") is snapshot_id(name + ".part") is None


def stored(*offsets: int, size: int = 10) -> list[StoredSnapshot]:
    return [StoredSnapshot(SnapshotId(offset, 1), size, written_ms=offset) for offset in offsets]


@pytest.mark.parametrize(
    ("max_bytes", "max_age_ms", "gone"),
    [(-1, -1, []), (1000, 1000, []), (125, -1, [1]), (0, -1, [1, 2]), (-1, 97, [1, 2]), (-1, 98, [1])],
)
def test_old_snapshots_go_by_size_or_age_but_never_the_newest(max_bytes: int, max_age_ms: int, gone: list[int]):
    found = outdated(stored(1, 2, 50), 100, 100, max_bytes=max_bytes, max_age_ms=max_age_ms)
    assert [one.offset for one in found] == gone
