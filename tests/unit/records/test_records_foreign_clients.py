"""Batches exchanged with kafka-python and aiokafka, in both directions and in every codec they have here."""

from __future__ import annotations

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from kafka.record.default_records import DefaultRecordBatch as PythonBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as PythonBuilder

from penstock.records.batch import Codec, check_crc
from penstock.records.builder import build_batch
from penstock.records.record import Record, read_records

RECORDS = [
    Record(
        i, 1_700_000_000_000 + i, b"key-%d" % (i % 7) if i % 5 else None, b"value " * i, (("h", b"x" * i), ("n", None))
    )
    for i in range(300)
]


def read_by(foreign: type[PythonBatch] | type[AioBatch], raw: bytes) -> list[Record]:
    batch = foreign(raw)
    assert batch.validate_crc()
    return [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]


@pytest.mark.parametrize("codec", list(Codec))
def test_aiokafka_reads_what_we_write(codec: Codec) -> None:
    assert read_by(AioBatch, bytes(build_batch(RECORDS, codec=codec))) == RECORDS


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_kafka_python_reads_what_we_write(codec: Codec) -> None:
    assert read_by(PythonBatch, bytes(build_batch(RECORDS, codec=codec))) == RECORDS


@pytest.mark.parametrize("codec", list(Codec))
def test_we_read_what_aiokafka_writes(codec: Codec) -> None:
    builder = AioBuilder(2, codec, False, -1, -1, -1, 1 << 20)
    for record in RECORDS:
        builder.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    raw = bytes(builder.build())
    assert check_crc(raw, 0, len(raw))
    assert read_records(raw) == RECORDS


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_we_read_what_kafka_python_writes(codec: Codec) -> None:
    builder = PythonBuilder(2, codec, False, -1, -1, -1, 1 << 20)
    for record in RECORDS:
        builder.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    raw = bytes(builder.build())
    assert check_crc(raw, 0, len(raw))
    assert read_records(raw) == RECORDS
