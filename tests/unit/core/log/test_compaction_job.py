"""A cleaning pass over files, on a full or damaged disk, and against a model of what a log must still say."""

from __future__ import annotations

import errno
import pickle
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.base.ports import Buffer
from penstock.core.log import names
from penstock.core.log.compaction import SegmentInfo, plan
from penstock.core.log.compaction_cleaner import LiveProducer
from penstock.core.log.compaction_job import Cleaned, CleaningJob, run
from penstock.core.log.compaction_map import ENTRY_BYTES
from penstock.core.log.config import LogConfig
from penstock.core.log.segment import Segment, WriteRefused
from penstock.core.log.txn_index import AbortedTransaction
from penstock.core.log.walk import BadBatch
from penstock.records.batch import Codec, iterate
from penstock.records.builder import build_batch
from penstock.records.control import EndMarker, build_end_marker, read_end_marker
from penstock.records.record import Record, read_records

DIRECTORY = "topic-0"
DAY_MS = 86_400_000
CONFIG = LogConfig(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0, delete_retention_ms=DAY_MS)


class MemoryFile:
    def __init__(self, disk: MemoryDisk, path: str) -> None:
        self.disk, self.path = disk, path

    @property
    def data(self) -> bytearray:
        return self.disk.files[self.path]

    def fileno(self) -> int:
        return -1

    def size(self) -> int:
        return len(self.data)

    def write(self, data: Buffer) -> int:
        if self.disk.writes_left == 0:
            raise OSError(errno.ENOSPC, "no room")
        self.disk.writes_left -= 1
        self.data.extend(data)
        return len(data)

    def pread(self, length: int, offset: int) -> bytes:
        return bytes(self.data[offset : offset + length])

    def truncate(self, size: int) -> None:
        del self.data[size:]

    def trim(self) -> None: ...

    def sync(self) -> None:
        self.disk.synced[self.path] = bytes(self.data)

    def close(self) -> None:
        pass


class MemoryDisk:
    def __init__(self) -> None:
        self.files: dict[str, bytearray] = {}
        self.synced: dict[str, bytes] = {}
        self.writes_left = -1
        """writes until the disk is full; below 0, it never is."""

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        if path not in self.files:
            if not create:
                raise FileNotFoundError(path)
            self.files[path] = bytearray()
        return MemoryFile(self, path)

    def exists(self, path: str) -> bool:
        return path in self.files

    def list(self, path: str) -> list[str]:
        return sorted(name.removeprefix(path + "/") for name in self.files)

    def make_directory(self, path: str) -> None:
        pass

    def rename(self, source: str, target: str) -> None:
        self.files[target] = self.files.pop(source)

    def remove(self, path: str) -> None:
        self.files.pop(path, None)

    def remove_tree(self, path: str) -> None:
        raise NotImplementedError

    def read(self, path: str) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(path)
        return bytes(self.files[path])

    def replace(self, path: str, data: bytes) -> None:
        self.files[path] = bytearray(data)

    def sync_directory(self, path: str) -> None:
        pass

    def modified_ms(self, path: str) -> int:
        return 0

    def free_bytes(self) -> int:
        return 1 << 40

    def total_bytes(self) -> int:
        return 1 << 40


class Log:
    """Closed segments in memory, and an empty active one behind them; `clean` is a pass with its swap."""

    def __init__(self, config: LogConfig = CONFIG) -> None:
        self.config = config
        self.disk = MemoryDisk()
        self.segments: list[int] = []
        self.next_offset = 0
        self.clean_offset: int | None = None
        self.aborted: list[AbortedTransaction] = []
        self.producers: dict[int, LiveProducer] = {}

    def roll(self, batches: list[bytearray]) -> None:
        base = self.next_offset
        for raw in batches:
            ((_, header),) = iterate(raw)
            assert header.base_offset == self.next_offset
            self.next_offset = header.next_offset
        self.segments.append(base)
        self.disk.files[self.path(base)] = bytearray().join(batches)

    def path(self, base: int) -> str:
        return names.segment_file(DIRECTORY, base, names.LOG)

    def job(self, now_ms: int, map_bytes: int = 1 << 20) -> CleaningJob | None:
        infos = [SegmentInfo(base, len(self.disk.files[self.path(base)]), -1, -1) for base in self.segments]
        planned = plan(
            infos,
            active_base_offset=self.next_offset,
            log_start_offset=0,
            log_end_offset=self.next_offset,
            high_watermark=self.next_offset,
            last_stable_offset=self.next_offset,
            clean_offset=self.clean_offset,
            config=self.config,
            now_ms=now_ms,
        )
        if planned is None:
            return None
        return CleaningJob(DIRECTORY, planned, self.aborted, self.producers, self.config, now_ms, map_bytes, 1 << 20, 0)

    def clean(self, now_ms: int, map_bytes: int = 1 << 20) -> Cleaned | None:
        job = self.job(now_ms, map_bytes)
        if job is None:
            return None
        cleaned = run(self.disk, pickle.loads(pickle.dumps(job)))  # as a helper process gets it
        self.swap(cleaned)
        return cleaned

    def swap(self, cleaned: Cleaned) -> None:
        for each in cleaned.groups:
            new = Segment.open(self.disk, DIRECTORY, each.base_offset, 4096, names.CLEANED)
            begin, end = (
                each.base_offset,
                [*self.segments, self.next_offset][self.segments.index(each.replaced[-1]) + 1],
            )
            self.aborted = [entry for entry in self.aborted if not begin <= entry.last_offset < end] + new.aborted
            for base in each.replaced:
                self.disk.remove(self.path(base))
                self.segments.remove(base)
            new.rename("")
            self.segments.append(each.base_offset)
            self.segments.sort()
        self.clean_offset = cleaned.clean_offset

    def batches(self) -> list[bytes]:
        raws = []
        for base in self.segments:
            data = bytes(self.disk.files[self.path(base)])
            raws += [data[at : at + header.size_bytes] for at, header in iterate(data)]
        return raws


def batch(offset: int, *pairs: tuple[bytes | None, bytes | None], codec: Codec = Codec.NONE) -> bytearray:
    return build_batch([Record.of(key, value, 100) for key, value in pairs], base_offset=offset, codec=codec)


def two_segments() -> Log:
    log = Log()
    log.roll([batch(0, (b"a", b"1"), (b"b", b"1")), batch(2, (b"a", b"2"))])
    log.roll([batch(3, (b"b", b"2")), batch(4, (b"c", b"1"))])
    return log


def test_small_segments_become_one_with_indexes_and_all_of_it_is_synced() -> None:
    log = two_segments()
    job = log.job(DAY_MS)
    assert job is not None
    cleaned = run(log.disk, job)
    assert [(each.base_offset, each.replaced) for each in cleaned.groups] == [(0, (0, 3))]
    assert cleaned.clean_offset == 5
    assert cleaned.bytes_after < cleaned.bytes_before
    made = {path: bytes(data) for path, data in log.disk.files.items() if path.endswith(names.CLEANED)}
    assert log.disk.synced == made
    assert any(path.endswith(names.INDEX + names.CLEANED) for path in made)
    log.swap(cleaned)
    records = [record for raw in log.batches() for record in read_records(raw)]
    assert [(record.offset, record.key, record.value) for record in records] == [
        (2, b"a", b"2"),
        (3, b"b", b"2"),
        (4, b"c", b"1"),
    ]


def test_a_segment_in_which_nothing_changes_is_not_written_again() -> None:
    log = Log(replace(CONFIG, segment_bytes=200))
    log.roll([batch(0, (b"a", b"1" * 100)), batch(1, (b"b", b"1"))])
    log.roll([batch(2, (b"c", b"1" * 100)), batch(3, (b"c", b"2"))])
    cleaned = log.clean(DAY_MS)
    assert cleaned is not None
    assert [each.replaced for each in cleaned.groups] == [(2,)]
    assert not [path for path in log.disk.files if path.endswith(names.CLEANED)]


def test_a_clean_log_is_not_cleaned_again() -> None:
    """KAFKA-8764, KAFKA-9826: passes end, whatever they leave behind."""
    log = Log()
    log.roll([batch(0, (None, b"1")), batch(1, (None, b"2"))])
    log.roll([batch(2, (b"a", None))])
    assert log.clean(DAY_MS) is not None
    assert log.clean(DAY_MS) is None
    assert log.clean(10 * DAY_MS) is None


@pytest.mark.parametrize("writes", range(3))
def test_a_full_disk_leaves_the_log_as_it_was(writes: int) -> None:
    log = two_segments()
    before = {path: bytes(data) for path, data in log.disk.files.items()}
    job = log.job(DAY_MS)
    assert job is not None
    log.disk.writes_left = writes
    with pytest.raises((OSError, WriteRefused)):
        run(log.disk, job)
    assert log.disk.files == before


def test_a_damaged_batch_stops_the_pass_and_nothing_is_lost() -> None:
    log = two_segments()
    log.disk.files[log.path(3)][-1] ^= 1
    before = {path: bytes(data) for path, data in log.disk.files.items()}
    job = log.job(DAY_MS)
    assert job is not None
    with pytest.raises(BadBatch):
        run(log.disk, job)
    assert log.disk.files == before


KEYS = st.sampled_from([b"a", b"b", b"c", b"a key that is longer than a digest"])
VALUES = st.none() | st.sampled_from([b"x", b"y", b"z" * 40])
PAIRS = st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4)
WRITES = st.tuples(st.sampled_from([-1, 7, 8]), PAIRS, st.sampled_from([Codec.NONE, Codec.LZ4]))
STEPS = st.lists(WRITES | st.tuples(st.sampled_from([7, 8]), st.booleans(), st.none()), min_size=1, max_size=25)


def written(log: Log, steps: list[tuple[int, object, object]], per_segment: int) -> None:
    """Play the steps into segments; transactions that are open at the end are aborted, so that all is stable."""
    batches: list[bytearray] = []
    offset, first_of = 0, {}
    for pid, content, codec in [*steps, (7, False, None), (8, False, None)]:
        if isinstance(content, bool):
            if pid not in first_of:
                continue
            marker = EndMarker(content, 1)
            batches.append(build_end_marker(marker, producer_id=pid, producer_epoch=0, timestamp=5, base_offset=offset))
            first = first_of.pop(pid)
            if not content:
                log.aborted.append(AbortedTransaction(pid, first, offset, offset + 1))
            offset += 1
            continue
        assert isinstance(content, list) and isinstance(codec, Codec)
        if pid >= 0:
            first_of.setdefault(pid, offset)
            log.producers[pid] = LiveProducer(offset + len(content) - 1, 0)
        options = {"producer_id": pid, "producer_epoch": 0, "transactional": True} if pid >= 0 else {}
        records = [Record.of(key, value, 50 + i) for i, (key, value) in enumerate(content)]
        batches.append(build_batch(records, base_offset=offset, codec=codec, **options))
        offset += len(content)
    for at in range(0, len(batches), per_segment):
        log.roll(batches[at : at + per_segment])


def committed(log: Log) -> list[Record]:
    """What a reader of committed records gets, by the markers in the log."""
    decided: list[Record] = []
    waiting: dict[int, list[Record]] = {}
    for raw in log.batches():
        ((_, header),) = iterate(raw)
        if header.is_control:
            marker = read_end_marker(raw)
            if marker is not None:
                ended = waiting.pop(header.producer_id, [])
                decided += ended if marker.committed else []
        elif header.is_transactional:
            waiting.setdefault(header.producer_id, []).extend(read_records(raw))
        else:
            decided += read_records(raw)
    assert not any(waiting.values()), "records whose marker is gone"
    return sorted(decided)


def table(records: list[Record]) -> dict[bytes | None, bytes]:
    return {key: value for key, value in {each.key: each.value for each in records}.items() if value is not None}


@settings(max_examples=150, deadline=None)
@given(
    steps=STEPS,
    per_segment=st.integers(1, 4),
    segment_bytes=st.sampled_from([100, 400, 1 << 20]),
    keys=st.integers(1, 5),
    waits=st.lists(st.sampled_from([0, 1, DAY_MS // 2, 2 * DAY_MS]), min_size=12, max_size=12),
)
def test_a_reader_ends_with_the_same_table_after_every_pass(
    steps: list[tuple[int, object, object]], per_segment: int, segment_bytes: int, keys: int, waits: list[int]
) -> None:
    log = Log(replace(CONFIG, segment_bytes=segment_bytes))
    written(log, steps, per_segment)
    before = committed(log)
    now_ms = DAY_MS
    for wait_ms in waits:
        now_ms += wait_ms
        clean_before = log.clean_offset
        cleaned = log.clean(now_ms, map_bytes=keys * ENTRY_BYTES)
        if cleaned is None:
            log.clean_offset = None  # as if more had been written: pass over everything again
            continue
        assert clean_before is None or cleaned.clean_offset > clean_before
        after = committed(log)
        assert set(after) <= set(before), "records change neither their offset nor anything else"
        assert table(after) == table(before)
        ends = [next(reversed(list(iterate(log.disk.files[log.path(base)]))))[1].next_offset for base in log.segments]
        assert ends == [*log.segments[1:], log.next_offset]


@settings(max_examples=60, deadline=None)
@given(steps=STEPS, per_segment=st.integers(1, 4))
def test_in_the_end_only_live_values_are_left(steps: list[tuple[int, object, object]], per_segment: int) -> None:
    log = Log()
    written(log, steps, per_segment)
    expected = table(committed(log))
    log.producers = {}
    for days in range(1, 5):
        log.clean(2 * days * DAY_MS)
        log.clean_offset = None
    left = committed(log)
    assert {record.key: record.value for record in left} == expected
    assert len(left) == len(expected)
    assert log.aborted == []
