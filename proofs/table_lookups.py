"""A table of a million keys: look-ups per second and their latency, in Python and over HTTP, while it is updated.

Every value that is looked up is checked: it is one that was written for its key, and none is older than one that was
seen before. At the end, when the updates have stopped, every key has its last version.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.ports import free_port
from penstock.tables import Table
from proofs.processes import BrokerProcess
from proofs.table_http import HttpClient, get_request, several_request
from proofs.table_load import Versions, fill, key_of, value_of

TOPIC = "users"
SEVERAL = 100
CONNECTIONS = 8


class Checker:
    """Holds every value against what was written, and against what was seen."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._seen: dict[int, int] = {}
        self.checked = 0
        self.updated = 0
        """values that were newer than the first of their key."""

    def check(self, number: int, value: bytes | None) -> None:
        assert value is not None, f"key {number} is gone"
        version = msgspec.json.decode(value)["version"]
        assert value == value_of(number, version), f"key {number} has a value that was never written: {value!r}"
        assert version <= self._versions[number], f"key {number}: version {version} is not written yet"
        seen = self._seen.get(number, 0)
        assert version >= seen, f"key {number}: version {version} after version {seen} was seen"
        if version:
            self._seen[number] = version
        self.checked += 1
        self.updated += version > 0


def run(keys: int = 1_000_000, seconds: float = 20, rate_per_s: int = 5_000, partitions: int = 4) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="penstock-table-") as scratch:
        broker = BrokerProcess(Path(scratch) / "data", free_port())
        broker.directory.mkdir()
        broker.start()
        try:
            admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 2})
            topic = NewTopic(TOPIC, partitions, 1, config={"cleanup.policy": "compact"})
            admin.create_topics([topic])[TOPIC].result(30)
            fill(broker.address, TOPIC, keys)
            return _run(broker.address, Path(scratch), keys, seconds, rate_per_s)
        finally:
            broker.kill()


def _run(address: str, scratch: Path, keys: int, seconds: float, rate_per_s: int) -> dict[str, object]:
    versions = Versions(scratch / "versions", keys)
    checker = Checker(versions)
    directory = scratch / "tables" / TOPIC
    figures: dict[str, object] = {"keys": keys, "updates_per_second_asked": rate_per_s}
    began = time.monotonic()
    with Table.open(address, TOPIC, directory) as table:
        load_s = time.monotonic() - began
        assert table.count() == keys, f"{table.count()} of {keys} keys are there"
        figures |= {
            "load_seconds": round(load_s, 2),
            "load_keys_per_second": round(keys / load_s),
            "store_mb": round(table.size_bytes() / 1e6),
        }
        with _updates(address, versions, rate_per_s, figures, "during_python"):
            figures["python"] = _look_up_in_process(table, checker, keys, seconds)
            figures["python_read_your_write_ms"] = _read_your_writes(address, table, versions)
        _compare_all(table, versions)
    began = time.monotonic()
    Table.open(address, TOPIC, directory).close()
    figures["open_again_seconds"] = round(time.monotonic() - began, 3)
    with _served(address, scratch) as url, _updates(address, versions, rate_per_s, figures, "during_http"):
        figures["http"] = asyncio.run(_look_up_by_http(url, checker, keys, seconds))
    with Table.open(address, TOPIC, directory) as table:
        _compare_all(table, versions)
    figures |= {"values_checked": checker.checked, "of_them_updated": checker.updated, "wrong": 0, "older_than_seen": 0}
    assert checker.updated, "no updated value was ever looked up: nothing was shown"
    shutil.rmtree(directory)
    return figures


def _look_up_in_process(table: Table, checker: Checker, keys: int, seconds: float) -> dict[str, object]:
    chance = random.Random(3)
    latencies_ns: list[int] = []
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        for _ in range(100):
            number = chance.randrange(keys)
            key = key_of(number)
            before = time.perf_counter_ns()
            entry = table.get(key)
            latencies_ns.append(time.perf_counter_ns() - before)
            checker.check(number, entry.value if entry else None)
    checked_per_s = len(latencies_ns) / (time.monotonic() - began)
    return {
        "threads": 1,
        "lookups_per_second": round(1e9 * len(latencies_ns) / sum(latencies_ns)),
        "lookups_per_second_with_checks": round(checked_per_s),
        **_latencies([ns / 1000 for ns in latencies_ns], "us"),
        "lag_records": table.as_of().lag,
    }


def _read_your_writes(address: str, table: Table, versions: Versions, samples: int = 100) -> dict[str, object]:
    """From a delivery report to a look-up that has the record."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0, "log_level": 2})
    took_ms = []
    for sample in range(samples):
        places: dict[int, int] = {}

        def delivered(_error: object, message: Message, places: dict[int, int] = places) -> None:
            partition, offset = message.partition(), message.offset()
            assert partition is not None and offset is not None
            places[partition] = offset

        producer.produce(TOPIC, b"%d" % sample, b"mine", on_delivery=delivered)
        producer.flush(30)
        began = time.perf_counter()
        entry = table.get(b"mine", min_offsets=places, wait_s=30)
        took_ms.append((time.perf_counter() - began) * 1000)
        assert entry is not None and entry.value == b"%d" % sample, f"{entry} where {sample} was written"
    producer.produce(TOPIC, None, b"mine")
    producer.flush(30)
    return _latencies(took_ms, "ms")


async def _look_up_by_http(url: str, checker: Checker, keys: int, seconds: float) -> dict[str, object]:
    one = await _ask(url, checker, keys, seconds / 2, 1, _one_key)
    many = await _ask(url, checker, keys, seconds / 2, CONNECTIONS, _one_key)
    several = await _ask(url, checker, keys, seconds / 2, 1, _several_keys)
    return {"one_connection": one, f"{CONNECTIONS}_connections": many, f"{SEVERAL}_keys_a_request": several}


Asking = Callable[[HttpClient, Checker, random.Random, int], Coroutine[None, None, tuple[float, int]]]
"""one request: how long it took in ms, and how many keys it looked up."""


async def _ask(
    url: str, checker: Checker, keys: int, seconds: float, connections: int, ask: Asking
) -> dict[str, object]:
    chance = random.Random(4)
    latencies_ms: list[float] = []
    looked_up = 0
    give_up = time.monotonic() + seconds

    async def one_connection() -> None:
        nonlocal looked_up
        client = await HttpClient.connect(url)
        while time.monotonic() < give_up:
            took_ms, count = await ask(client, checker, chance, keys)
            latencies_ms.append(took_ms)
            looked_up += count
        client.close()

    began = time.monotonic()
    await asyncio.gather(*(one_connection() for _ in range(connections)))
    return {"lookups_per_second": round(looked_up / (time.monotonic() - began)), **_latencies(latencies_ms, "ms")}


async def _one_key(client: HttpClient, checker: Checker, chance: random.Random, keys: int) -> tuple[float, int]:
    number = chance.randrange(keys)
    began = time.perf_counter()
    body = await client.ask(get_request(TOPIC, key_of(number).decode()))
    took_ms = (time.perf_counter() - began) * 1000
    checker.check(number, bytes(msgspec.json.decode(body, type=_Entry).value))
    return took_ms, 1


async def _several_keys(client: HttpClient, checker: Checker, chance: random.Random, keys: int) -> tuple[float, int]:
    numbers = [chance.randrange(keys) for _ in range(SEVERAL)]
    request = several_request(TOPIC, [key_of(number).decode() for number in numbers])
    began = time.perf_counter()
    body = await client.ask(request)
    took_ms = (time.perf_counter() - began) * 1000
    for number, entry in zip(numbers, msgspec.json.decode(body, type=_Entries).entries, strict=True):
        checker.check(number, bytes(entry.value) if entry else None)
    return took_ms, SEVERAL


class _Entry(msgspec.Struct):
    value: msgspec.Raw


class _Entries(msgspec.Struct):
    entries: list[_Entry | None]


def _compare_all(table: Table, versions: Versions) -> None:
    """Once it has caught up: every key has its last version."""
    deadline = time.monotonic() + 60
    while table.as_of().lag:
        assert time.monotonic() < deadline, f"the table does not catch up: {table.as_of()}"
        time.sleep(0.01)
    count = 0
    for number, entry in enumerate(entry for entry in table.entries() if entry.key != b"mine"):
        expected = value_of(number, versions[number])
        assert (entry.key, entry.value) == (key_of(number), expected), f"{entry} where {expected!r} was written last"
        count += 1
    assert count == versions.keys, f"{count} of {versions.keys} keys are there"


@contextmanager
def _updates(
    address: str, versions: Versions, rate_per_s: int, figures: dict[str, object], name: str
) -> Iterator[None]:
    command = [
        sys.executable,
        "-m",
        "proofs.table_load",
        address,
        TOPIC,
        str(versions.path),
        str(versions.keys),
        str(rate_per_s),
    ]
    root = Path(__file__).resolve().parent.parent
    began = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        try:
            yield
        finally:
            sent, _ = process.communicate(timeout=180)
    assert process.returncode == 0, "the updates failed"
    figures[f"updates_per_second_{name}"] = round(int(sent) / (time.monotonic() - began))


@contextmanager
def _served(address: str, scratch: Path) -> Iterator[str]:
    """`penstock table serve`, as a process."""
    command = [sys.executable, "-m", "penstock.cli.main", "table", "serve", TOPIC, "-b", address, "--port", "0"]
    command += ["--dir", str(scratch / "tables")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("ready: "), f"the server did not start: {line!r}"
            yield line.removeprefix("ready: ").strip()
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0, "the server did not stop cleanly"


def _latencies(samples: list[float], unit: str) -> dict[str, object]:
    ordered = sorted(samples)

    def at(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))], 3)

    return {
        f"p50_{unit}": round(statistics.median(ordered), 3),
        f"p99_{unit}": at(0.99),
        f"p999_{unit}": at(0.999),
        f"max_{unit}": round(ordered[-1], 3),
    }
