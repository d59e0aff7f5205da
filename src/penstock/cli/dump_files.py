"""Readers of the files of a data directory: plain dicts, with `damage` where something does not add up."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any, NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from penstock.base.errors import DecodeError
from penstock.base.ids import id_text
from penstock.cli.dump_records import Decoder, decoder_for, plain_records
from penstock.core.log import checkpoints, names, offset_index, producer_snapshot, sums, time_index, txn_index
from penstock.core.log.epochs import LeaderEpochs
from penstock.records.batch import FRAME_BYTES, HEADER_BYTES, MAGIC, BatchHeader, Codec, check_crc, read_header

Entry = dict[str, Any]
_SUM = Struct(">IqIiIII")
METADATA_SNAPSHOT = ".checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
TEXT_FILES = ("quorum-state", "meta.properties", checkpoints.CLEAN_SHUTDOWN)
OFFSET_FILES = (checkpoints.RECOVERY_POINTS, checkpoints.START_OFFSETS, checkpoints.HIGH_WATERMARKS, CLEANER_OFFSETS)


class Options(NamedTuple):
    records: bool
    """the records inside the batches too"""
    raw: bool
    """no decoding of internal topics"""
    first_offset: int


def is_known(name: str) -> bool:
    return _reader(name) is not None


def entries(path: str, options: Options) -> Iterator[Entry]:
    """What is in a file, entry by entry."""
    reader = _reader(os.path.basename(path))
    assert reader is not None, path
    with open(path, "rb") as file:
        # A segment may be a gigabyte: only what is looked at need be in memory.
        whole = os.fstat(file.fileno()).st_size
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if whole and reader is _segment else file.read()
        try:
            yield from reader(path, data, options)
        except DecodeError as fault:
            yield {"damage": str(fault)}


Reader = Callable[[str, Any, Options], Iterator[Entry]]


def _reader(name: str) -> Reader | None:
    by_suffix: dict[str, Reader] = {
        names.LOG: _segment,
        METADATA_SNAPSHOT: _segment,
        names.INDEX: _offset_index,
        names.TIME_INDEX: _time_index,
        names.TXN_INDEX: _txn_index,
        names.SNAPSHOT: _producers,
        names.SUMS: _sums,
    }
    by_name: dict[str, Reader] = {
        names.EPOCHS: _epochs,
        names.PARTITION_METADATA: _partition_metadata,
        **dict.fromkeys(OFFSET_FILES, _offsets),
        **dict.fromkeys(TEXT_FILES, _lines),
    }
    return by_name.get(name) or by_suffix.get(os.path.splitext(name)[1])


def _segment(path: str, data: Any, options: Options) -> Iterator[Entry]:
    decoder = None if options.raw else decoder_for(path)
    at = 0
    while at < len(data):
        if len(data) - at < HEADER_BYTES:
            yield {"position": at, "damage": f"{len(data) - at} bytes are left, too few for a batch"}
            return
        header = read_header(data, at)
        size = header.length + FRAME_BYTES
        if header.magic != MAGIC or size < HEADER_BYTES or at + size > len(data):
            yield {
                "position": at,
                "damage": f"no whole batch of format 2 begins here (magic {header.magic}, size {size})",
            }
            return
        if header.last_offset >= options.first_offset:
            yield _batch(data, at, header, options, decoder)
        at += size


def _batch(data: Any, at: int, header: BatchHeader, options: Options, decoder: Decoder | None) -> Entry:
    size = header.size_bytes
    entry: Entry = {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.records_count,
        "position": at,
        "size": size,
        "leader_epoch": header.leader_epoch,
        "crc": header.crc,
        "codec": Codec(header.codec).name.lower() if header.codec <= Codec.ZSTD else header.codec,
        "timestamp_type": "append" if header.timestamp_type else "create",
        "base_timestamp": header.base_timestamp,
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "delete_horizon_ms": header.delete_horizon_ms,
    }
    if not check_crc(data, at, size):
        return entry | {"damage": "the checksum does not match"}
    if options.records:
        entry |= plain_records(data[at : at + size], control=header.is_control, decoder=decoder)
    return entry


def _base(path: str) -> int:
    return names.offset_of(os.path.basename(path)) or 0


def _used(data: bytes, entry_bytes: int) -> bytes:
    """Without the zeros behind the entries: Kafka makes room for an index ahead of time."""
    used = len(data.rstrip(b"\0"))
    return data[: min(len(data) // entry_bytes * entry_bytes, used + -used % entry_bytes)]


def _offset_index(path: str, data: bytes, options: Options) -> Iterator[Entry]:
    index = offset_index.OffsetIndex(_base(path), _used(data, offset_index.ENTRY_BYTES))
    before = -1
    for offset, position in map(index.entry, range(len(index))):
        if offset >= options.first_offset:
            entry = {"offset": offset, "position": position}
            yield entry | ({"damage": "offsets do not ascend"} if offset <= before else {})
        before = offset


def _time_index(path: str, data: bytes, options: Options) -> Iterator[Entry]:
    index = time_index.TimeIndex(_base(path), _used(data, time_index.ENTRY_BYTES))
    before = -1
    for timestamp, offset in map(index.entry, range(len(index))):
        entry = {"timestamp": timestamp, "offset": offset}
        yield entry | ({"damage": "timestamps do not ascend"} if timestamp < before else {})
        before = timestamp


def _txn_index(path: str, data: bytes, options: Options) -> Iterator[Entry]:
    found = txn_index.decode(data, _base(path))
    if found is None:
        raise DecodeError("transaction index: these cannot be its entries")
    for aborted in found:
        yield aborted._asdict()


def _producers(path: str, data: bytes, options: Options) -> Iterator[Entry]:
    for producer in producer_snapshot.decode(data):
        last = producer.batches[-1] if producer.batches else None
        yield {
            "producer_id": producer.producer_id,
            "producer_epoch": producer.epoch,
            "coordinator_epoch": producer.coordinator_epoch,
            "last_timestamp": producer.last_timestamp,
            "last_sequence": last.last_sequence if last else None,
            "last_offset": last.last_offset if last else None,
            "open_transaction_from": producer.txn_first_offset if producer.txn_first_offset >= 0 else None,
            "batches": [batch._asdict() for batch in producer.batches],
        }


def _sums(path: str, data: bytes, options: Options) -> Iterator[Entry]:
    chain = 0
    for at in range(0, len(data) - sums.ENTRY_BYTES + 1, sums.ENTRY_BYTES):
        found = sums.Sum._make(_SUM.unpack_from(data, at))
        chain = crc32c(data[at : at + sums.ENTRY_BYTES - 4], chain)
        entry = {"kind": "batch" if found.size else "seal", **found._asdict()}
        yield entry | ({} if chain == found.chain else {"damage": "the chain of checksums is broken"})
        chain = found.chain


def _epochs(path: str, data: bytes, options: Options) -> Iterator[Entry]:
    for epoch, start in LeaderEpochs.decode(data).entries():
        yield {"leader_epoch": epoch, "start_offset": start}


def _offsets(path: str, data: bytes, options: Options) -> Iterator[Entry]:
    for partition, offset in checkpoints.decode_offsets(data).items():
        yield {"topic": partition.topic, "partition": partition.partition, "offset": offset}


def _partition_metadata(path: str, data: bytes, options: Options) -> Iterator[Entry]:
    yield {"topic_id": id_text(checkpoints.decode_partition_metadata(data))}


def _lines(path: str, data: bytes, options: Options) -> Iterator[Entry]:
    for line in data.decode("utf-8", "replace").splitlines():
        if line and not line.startswith("#"):
            yield {"line": line}
