"""Files of a data directory, shown."""

import json

import pytest

from penstock.cli.main import main
from penstock.core.log.txn_index import AbortedTransaction, encode
from penstock.protocol.generated.offset_commit_key import OffsetCommitKey
from penstock.protocol.generated.offset_commit_value import OffsetCommitValue
from penstock.protocol.generated.topic_record import TopicRecord
from penstock.protocol.metadata_frames import encode_coordinator_key, encode_coordinator_value, encode_metadata
from penstock.records.builder import build_batch
from penstock.records.control import EndMarker, build_end_marker
from penstock.records.record import Record

FIRST = "00000000000000000000"


def dump(capsys, *arguments):
    code = main(["dump", "--format", "json", *map(str, arguments)])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def segment(tmp_path, directory, *batches):
    (tmp_path / directory).mkdir()
    path = tmp_path / directory / f"{FIRST}.log"
    path.write_bytes(b"".join(map(bytes, batches)))
    return path


def test_batches_and_records(tmp_path, capsys):
    records = [Record.of(b"k", b"v", 1000), Record.of(None, b"\xff", 2000, (("h", b"x"),))]
    path = segment(tmp_path, "orders-0", build_batch(records, codec=4), build_batch(records[:1], base_offset=2))
    code, found = dump(capsys, path, "--records")
    assert code == 0
    assert [(b["base_offset"], b["last_offset"], b["codec"]) for b in found] == [(0, 1, "zstd"), (2, 2, "none")]
    assert found[0]["records"][0] == {"offset": 0, "timestamp": 1000, "key": "k", "value": "v"}
    assert found[0]["records"][1]["value"] == "base64:/w=="
    assert found[0]["records"][1]["headers"] == [{"key": "h", "value": "x"}]


def test_only_from_an_offset_and_only_so_many(tmp_path, capsys):
    batches = [build_batch([Record.of(None, b"v", 0)], base_offset=n) for n in range(5)]
    path = segment(tmp_path, "orders-0", *batches)
    _, found = dump(capsys, path, "--from", "2", "-n", "2")
    assert [b["base_offset"] for b in found] == [2, 3]


@pytest.mark.parametrize("spoil", [lambda data: data[:-1], lambda data: data[:-1] + b"x", lambda data: data + b"junk"])
def test_damage_is_told_and_is_exit_code_1(tmp_path, capsys, spoil):
    path = segment(tmp_path, "orders-0", build_batch([Record.of(None, b"value", 0)]))
    path.write_bytes(spoil(path.read_bytes()))
    code, found = dump(capsys, path)
    assert code == 1
    assert "damage" in found[-1]


def test_end_markers_are_named(tmp_path, capsys):
    marker = build_end_marker(EndMarker(False, 7), producer_id=1, producer_epoch=0, timestamp=5)
    _, found = dump(capsys, segment(tmp_path, "orders-0", marker), "-r")
    assert found[0]["records"][0]["control"] == "abort"
    assert found[0]["records"][0]["coordinator_epoch"] == 7


def test_committed_offsets_are_decoded_unless_raw(tmp_path, capsys):
    key = bytes(encode_coordinator_key(OffsetCommitKey(group="g", topic="t", partition=3)))
    value = bytes(encode_coordinator_value(OffsetCommitValue(offset=42), 3))
    batch = build_batch([Record.of(key, value, 0), Record.of(key, None, 0)])
    path = segment(tmp_path, "__consumer_offsets-0", batch)
    _, (found,) = dump(capsys, path, "-r")
    assert found["records"][0]["type"] == "OffsetCommit"
    assert found["records"][0]["key"] == {"group": "g", "topic": "t", "partition": 3}
    assert found["records"][0]["value"]["offset"] == 42
    assert found["records"][1]["value"] is None
    _, (raw,) = dump(capsys, path, "-r", "--raw")
    assert raw["records"][0]["key"].startswith("base64:")


def test_metadata_records_are_decoded(tmp_path, capsys):
    record = TopicRecord(name="orders", topic_id=bytes(15) + b"\x01")
    path = segment(tmp_path, "__cluster_metadata-0", build_batch([Record.of(None, bytes(encode_metadata(record)), 0)]))
    _, (found,) = dump(capsys, path, "-r")
    assert found["records"][0]["type"] == "TopicRecord"
    assert found["records"][0]["data"] == {"name": "orders", "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ"}


def test_a_record_that_cannot_be_decoded_is_shown_as_it_is(tmp_path, capsys):
    path = segment(tmp_path, "__cluster_metadata-0", build_batch([Record.of(None, b"\x01\xff\xff\x7f\x00", 0)]))
    code, (found,) = dump(capsys, path, "-r")
    assert code == 0
    assert "undecodable" in found["records"][0]


def test_indexes_and_checkpoints(tmp_path, capsys):
    directory = tmp_path / "orders-0"
    directory.mkdir()
    (directory / f"{FIRST}.index").write_bytes(bytes([0, 0, 0, 5, 0, 0, 16, 0]) + bytes(16))
    (directory / f"{FIRST}.timeindex").write_bytes((99).to_bytes(8, "big") + (5).to_bytes(4, "big"))
    (directory / f"{FIRST}.txnindex").write_bytes(encode([AbortedTransaction(1, 2, 3, 4)]))
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n3 17\n")
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 6\n")
    _, found = dump(capsys, directory)
    shown = [{k: v for k, v in entry.items() if k != "file"} for entry in found]
    assert {"offset": 5, "position": 4096} in shown
    assert {"timestamp": 99, "offset": 5} in shown
    assert {"producer_id": 1, "first_offset": 2, "last_offset": 3, "last_stable_offset": 4} in shown
    assert {"leader_epoch": 3, "start_offset": 17} in shown
    assert len(shown) == 4
    _, found = dump(capsys, tmp_path / "recovery-point-offset-checkpoint")
    assert found[0]["offset"] == 6


def test_a_broken_snapshot_is_damage(tmp_path, capsys):
    (tmp_path / f"{FIRST}.snapshot").write_bytes(b"\x00\x01junk")
    code, found = dump(capsys, tmp_path / f"{FIRST}.snapshot")
    assert code == 1
    assert "producer snapshot" in found[0]["damage"]


def test_unknown_and_missing_files_are_refused(tmp_path, capsys):
    (tmp_path / "photo.jpg").write_bytes(b"")
    assert main(["dump", str(tmp_path / "photo.jpg")]) == 1
    assert main(["dump", str(tmp_path / "gone.log")]) == 1
    assert main(["dump", str(tmp_path)]) == 1
    assert capsys.readouterr().err.count("penstock: ") == 3
