"""The producers of a partition at an offset, as Kafka writes them to `<offset>.snapshot` (docs/formats/segment.md).

    version i16 (1)   crc u32   count i32   count x { producer id i64, epoch i16, last sequence i32, last offset i64,
    offset delta i32, timestamp i64, coordinator epoch i32, first offset of the open transaction i64 }

Kafka keeps one batch a producer and forgets the four before it in a restart, so that a client which sends five again
is refused. Where one is not enough, all of a producer's batches follow the entries, the oldest first; Kafka's reader
does not look there, though its CRC covers them:

    count i32   count x { producer id i64, last sequence i32, last offset i64, offset delta i32, timestamp i64 }
"""

from __future__ import annotations

from struct import Struct, error

from fastcrc.crc32 import iscsi as _crc32c

from penstock.base.errors import DecodeError
from penstock.core.log.producers import NO_OFFSET, Producer, ProducerBatch
from penstock.records.batch import NO_SEQUENCE, SEQUENCE_MAX

VERSION = 1
_HEAD = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")
_BATCH = Struct(">qiqiq")
_CRC_FROM = _HEAD.size


def encode(producers: list[Producer]) -> bytes:
    body = bytearray(_COUNT.pack(len(producers)))
    for p in producers:
        last = p.batches[-1] if p.batches else ProducerBatch(NO_SEQUENCE, NO_SEQUENCE, NO_OFFSET, 0, p.last_timestamp)
        body += _ENTRY.pack(
            p.producer_id,
            p.epoch,
            last.last_sequence,
            last.last_offset,
            last.offset_delta,
            p.last_timestamp,
            p.coordinator_epoch,
            p.txn_first_offset,
        )
    rest = [(p.producer_id, *batch[1:]) for p in producers if _needs_table(p) for batch in p.batches]
    if rest:
        body += _COUNT.pack(len(rest))
        for values in rest:
            body += _BATCH.pack(*values)
    return _HEAD.pack(VERSION, _crc32c(bytes(body))) + bytes(body)


def _needs_table(p: Producer) -> bool:
    """A marker after the last batch moves the producer's timestamp, not the batch's."""
    return len(p.batches) > 1 or (len(p.batches) == 1 and p.batches[0].timestamp != p.last_timestamp)


def decode(raw: bytes) -> list[Producer]:
    try:
        version, crc = _HEAD.unpack_from(raw)
        if version != VERSION:
            raise DecodeError(f"producer snapshot: version {version} is not {VERSION}")
        if _crc32c(raw[_CRC_FROM:]) != crc:
            raise DecodeError("producer snapshot: the checksum does not match")
        (count,) = _COUNT.unpack_from(raw, _CRC_FROM)
        at = _CRC_FROM + _COUNT.size
        producers = {p.producer_id: p for p in (_producer(raw, at + i * _ENTRY.size) for i in range(count))}
        at += count * _ENTRY.size
        if at < len(raw):
            _read_table(producers, raw, at)
    except (error, KeyError) as problem:
        raise DecodeError(f"producer snapshot: {problem}") from None
    return list(producers.values())


def _producer(raw: bytes, at: int) -> Producer:
    producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, txn = _ENTRY.unpack_from(
        raw, at
    )
    p = Producer(producer_id)
    p.epoch, p.coordinator_epoch, p.last_timestamp, p.txn_first_offset = epoch, coordinator_epoch, timestamp, txn
    if last_offset >= 0:
        p.batches.append(_batch(last_sequence, last_offset, delta, timestamp))
    return p


def _read_table(producers: dict[int, Producer], raw: bytes, at: int) -> None:
    (count,) = _COUNT.unpack_from(raw, at)
    table: dict[int, list[ProducerBatch]] = {}
    for slot in range(count):
        producer_id, *values = _BATCH.unpack_from(raw, at + _COUNT.size + slot * _BATCH.size)
        table.setdefault(producer_id, []).append(_batch(*values))
    for producer_id, batches in table.items():
        producers[producer_id].batches = batches


def _batch(last_sequence: int, last_offset: int, delta: int, timestamp: int) -> ProducerBatch:
    first = (last_sequence - delta) & SEQUENCE_MAX if last_sequence >= 0 else NO_SEQUENCE
    return ProducerBatch(first, last_sequence, last_offset, delta, timestamp)
