"""Records a second of one core: raw batches to Arrow and back, and through a broker that is given.

    python benchmarks/columnar.py [--records N] [--bytes B] [--batch-bytes B] [--bootstrap HOST:PORT]

CPU time, so that a busy machine changes little; the best of some rounds. Reading and writing through a broker are told
in wall time as well. Prints a line per case, then JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from uuid import uuid4

import pyarrow as pa

from penstock.base.ids import TopicPartition
from penstock.columnar.decode import Decoder
from penstock.columnar.encode import encode, partition_of
from penstock.columnar.ranges import read_range
from penstock.columnar.schema import COLUMNS
from penstock.columnar.writing import TopicWriter
from penstock.records.batch import Codec, patch, read_header
from penstock.wire.admin import NewTopic, create_topics
from penstock.wire.blocking import Client

NOW_MS = 1_763_000_000_000
ROUNDS = 10
PARTITIONS = 4
ROWS_A_WRITE = 10_000


def table(records: int, size: int) -> pa.RecordBatch:
    """Half of each value is noise, so that codecs have something to do and something to gain."""
    noise = os.urandom(size // 2 + 1_000_000)
    values = [(noise[n % 1_000_000 :][: size // 2] + b" plain text" * size)[:size] for n in range(records)]
    keys = [b"key-%d" % n for n in range(records)]
    return pa.RecordBatch.from_pydict({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})


def cpu_rate(records: int, work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return records / best


def in_memory(records: int, size: int, batch_bytes: int) -> dict[str, float]:
    rows = table(records, size)
    rates = {"hash keys": cpu_rate(records, lambda: partition_of(rows.column(0), PARTITIONS))}
    for codec in Codec:
        found = encode(rows, now_ms=NOW_MS, codec=codec, batch_bytes=batch_bytes)
        rates[f"encode {codec.name.lower()}"] = cpu_rate(
            records, lambda codec=codec: encode(rows, now_ms=NOW_MS, codec=codec, batch_bytes=batch_bytes)
        )
        raw = bytearray()
        for data, offset in zip(found, _offsets(found), strict=True):
            patch(data, 0, offset, 0)
            raw += data
        for wanted in (COLUMNS, frozenset({"value"}), frozenset({"offset"})):
            decoder = Decoder("benchmark", 0, wanted)
            name = "all" if wanted == COLUMNS else ", ".join(sorted(wanted))
            rates[f"decode {codec.name.lower()}: {name}"] = cpu_rate(
                records, lambda decoder=decoder, raw=raw: decoder.decode(raw, 0, records)
            )
    return rates


def _offsets(batches: list[bytearray]) -> list[int]:
    offsets = [0]
    for data in batches:
        offsets.append(offsets[-1] + read_header(data).records_count)
    return offsets[:-1]


def through_a_broker(bootstrap: str, records: int, size: int) -> dict[str, float]:
    topic = f"benchmark-{uuid4().hex[:8]}"
    with Client(bootstrap) as client:
        client.run(create_topics(client.cluster, [NewTopic(topic, PARTITIONS, 1)]))
    rows = table(ROWS_A_WRITE, size)
    wall, cpu = time.perf_counter(), time.process_time()
    with TopicWriter(bootstrap, topic=topic) as writer:
        for _ in range(records // ROWS_A_WRITE):
            writer.write(rows)
    rates = _two("write", writer.rows, wall, cpu)
    wall, cpu = time.perf_counter(), time.process_time()
    found = sum(
        batch.num_rows
        for partition in range(PARTITIONS)
        for batch in read_range(bootstrap, topic, partition, 0, writer.ends.get(TopicPartition(topic, partition), 0))
    )
    assert found == writer.rows
    return rates | _two("read", found, wall, cpu)


def _two(what: str, records: int, wall: float, cpu: float) -> dict[str, float]:
    return {
        f"{what}, wall": records / (time.perf_counter() - wall),
        f"{what}, CPU": records / (time.process_time() - cpu),
    }


def start_s() -> float:
    """Seconds of a new process until the first row, kernels from the cache."""
    program = (
        "from penstock.columnar import ranges; from penstock.columnar.decode import Decoder;"
        "from penstock.records.builder import build_batch; from penstock.records.record import Record;"
        "Decoder('t', 0).decode(build_batch([Record.of(b'k', b'v', 0)]), 0, 1)"
    )
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=35_000, help="about what a fetch of 4 MiB holds")
    parser.add_argument("--bytes", type=int, default=100, help="of each value")
    parser.add_argument("--batch-bytes", type=int, default=524_288)
    parser.add_argument("--bootstrap", help="also write and read a hundred times as many records there")
    args = parser.parse_args()
    rates = in_memory(args.records, args.bytes, args.batch_bytes)
    if args.bootstrap:
        rates |= through_a_broker(args.bootstrap, 100 * args.records, args.bytes)
    for name, rate in rates.items():
        print(f"{name:28} {rate / 1e6:8.2f} M records/s {rate * args.bytes / 1e6:10.0f} MB/s")
    result = {"records_per_s": {name: round(rate) for name, rate in rates.items()}, "start_s": round(start_s(), 3)}
    result["peak_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
