"""What the proof of table look-ups writes: every key once, then updates at a steady rate until told to stop.

A process of its own, so that it does not share a lock with who looks up. How far it is stands in a file that both map:
for each key the last version that was handed to the producer, written before it is.
"""

from __future__ import annotations

import mmap
import random
import select
import struct
import sys
import time
from pathlib import Path

from confluent_kafka import Producer

VERSION = struct.Struct("=I")
TICK_S = 0.01


def key_of(number: int) -> bytes:
    return b"user-%08d" % number


def value_of(number: int, version: int) -> bytes:
    """A hundred bytes, and nothing in them that does not follow from the two numbers."""
    return b'{"id":%d,"version":%d,"name":"user %d","balance":%d,"country":"NL","since":"2026-01-%02d"}' % (
        number, version, number, (number * 31 + version * 17) % 1_000_000, number % 28 + 1,
    )  # fmt: skip


class Versions:
    """The last version of each key, in a file."""

    def __init__(self, path: Path, keys: int) -> None:
        with open(path, "r+b" if path.exists() else "w+b") as file:
            file.truncate(keys * VERSION.size)
            self._map = mmap.mmap(file.fileno(), keys * VERSION.size)
        self.path = path
        self.keys = keys

    def __getitem__(self, number: int) -> int:
        version: int = VERSION.unpack_from(self._map, number * VERSION.size)[0]
        return version

    def advance(self, number: int) -> int:
        version = self[number] + 1
        VERSION.pack_into(self._map, number * VERSION.size, version)
        return version


def fill(address: str, topic: str, keys: int) -> None:
    """Every key's version 0, in an order that is not theirs."""
    producer = _producer(address)
    numbers = list(range(keys))
    random.Random(1).shuffle(numbers)
    for number in numbers:
        _send(producer, topic, number, 0)
    _flush(producer)


def update(address: str, topic: str, versions: Versions, rate_per_s: int) -> int:
    """Until standard input ends."""
    producer = _producer(address)
    chance = random.Random(2)
    began, sent = time.monotonic(), 0
    while not _input_ended():
        due = int((time.monotonic() - began) * rate_per_s)
        for _ in range(due - sent):
            number = chance.randrange(versions.keys)
            _send(producer, topic, number, versions.advance(number))
        sent = max(sent, due)
        producer.poll(0)
        time.sleep(TICK_S)
    _flush(producer)
    return sent


def _producer(address: str) -> Producer:
    return Producer(
        {"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 5, "log_level": 2,
         "queue.buffering.max.messages": 500_000}
    )  # fmt: skip


def _send(producer: Producer, topic: str, number: int, version: int) -> None:
    while True:
        try:
            producer.produce(topic, value_of(number, version), key_of(number), on_delivery=_delivered)
            return
        except BufferError:
            producer.poll(0.05)


def _delivered(error: object, _message: object) -> None:
    if error is not None:
        raise RuntimeError(f"a record was not delivered: {error}")


def _flush(producer: Producer) -> None:
    left = producer.flush(120)
    if left:
        raise RuntimeError(f"{left} records were never answered")


def _input_ended() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])


if __name__ == "__main__":
    _address, _topic, _path, _keys, _rate = sys.argv[1:]
    print(update(_address, _topic, Versions(Path(_path), int(_keys)), int(_rate)))
