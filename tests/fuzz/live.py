"""Hostile frames against a real broker by TCP, beside a good client that must not notice."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path

from penstock.protocol.generated.metadata_request import MetadataRequest
from tests.bad_input.raw_client import Closed, RawClient, create_topic
from tests.bad_input.watched_broker import PROBE_TOPIC, UNEXPECTED, Probe, WatchedBroker
from tests.fuzz.report import Finding
from tests.fuzz.requests import TOPICS, Maker

GROWTH_BYTES_MAX = 256 * 1024 * 1024
PATIENCE_S = 0.05
"""for an answer: a fetch or a join may rightly wait longer, so nobody waits for it to the end"""
PROBE_SLOWEST_S = 5.0
REMEMBERED = 12
LOOK_EVERY = 50
SETTINGS = {"auto.create.topics.enable": "false", "offsets.topic.num.partitions": "2"}
STEADY = {
    "cleanup_policy": "delete",
    "compression_type": "producer",
    "flush_messages": "9223372036854775807",
    "max_message_bytes": "1048588",
    "message_timestamp_type": "CreateTime",
    "min_insync_replicas": "1",
    "retention_bytes": "-1",
    "retention_ms": "-1",
    "segment_bytes": "1073741824",
}
"""of the good client's topic: no default that the fuzzer may find and change reaches it"""


def fuzz_broker(directory: Path, seed: int, seconds: float, frames_max: int) -> int:
    """How many frames were sent; Finding where the broker, its log, its memory or its good client suffered."""
    with WatchedBroker(directory, SETTINGS) as broker:
        ids = _make_topics(broker)
        probe = Probe(broker).start()
        try:
            return _Attack(broker, probe, Maker(seed, ids)).run(seconds, frames_max)
        finally:
            probe.stop()


def _make_topics(broker: WatchedBroker) -> dict[str, bytes]:
    with broker.connect() as client:
        assert create_topic(client, PROBE_TOPIC, **STEADY) == 0
        for name, configs in TOPICS.items():
            assert create_topic(client, name, partitions=2, **configs) == 0
        told = client.call(MetadataRequest(topics=None), 12).topics
    return {topic.name: topic.topic_id for topic in told if topic.name in TOPICS}


class _Attack:
    def __init__(self, broker: WatchedBroker, probe: Probe, maker: Maker) -> None:
        self._broker = broker
        self._probe = probe
        self._maker = maker
        self._client: RawClient | None = None
        self._recent: deque[bytes] = deque(maxlen=REMEMBERED)
        self._log_bytes = broker.log_path.stat().st_size
        self._rss_bytes = broker.rss_bytes

    def run(self, seconds: float, frames_max: int) -> int:
        until = time.monotonic() + seconds
        sent = 0
        while sent < frames_max and time.monotonic() < until:
            self._send(self._maker.frame())
            sent += 1
            self._look_at_log()
            if sent % LOOK_EVERY == 0:
                self._look_closely()
        self._drop()
        self._look_closely()
        return sent

    def _send(self, frame: bytes) -> None:
        self._recent.append(frame)
        chance = self._maker.chance
        try:
            if self._client is None:
                self._client = self._broker.connect(PATIENCE_S)
            if chance.random() < 0.1:
                cut = chance.randrange(len(frame) + 1)
                self._client.send(frame[:cut])
                frame = frame[cut:]
            self._client.send(frame)
            self._client.receive()
        except (Closed, TimeoutError, MemoryError):
            self._drop()
        except OSError as fault:
            self._drop()
            if not self._broker.is_alive:
                raise Finding(f"the broker is gone: {fault!r}", list(self._recent)) from fault

    def _drop(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _look_at_log(self) -> None:
        size = self._broker.log_path.stat().st_size
        if size == self._log_bytes:
            return
        with self._broker.log_path.open("rb") as log:
            log.seek(self._log_bytes)
            news = log.read(size - self._log_bytes).decode(errors="replace")
        self._log_bytes = size
        if any(words in news for words in UNEXPECTED):
            raise Finding(f"the broker did not foresee it:\n{news}", list(self._recent))

    def _look_closely(self) -> None:
        try:
            self._probe.await_cycles(1)
            assert self._broker.is_alive, "the broker is gone"
            grown = self._broker.rss_bytes - self._rss_bytes
            assert grown < GROWTH_BYTES_MAX, f"its memory has grown by {grown} bytes"
            slowest_s = self._probe.slowest_s
            assert slowest_s < PROBE_SLOWEST_S, f"the good client had to wait {slowest_s:.1f} s"
        except AssertionError as fault:
            raise Finding(str(fault), list(self._recent)) from fault
        self._look_at_log()
