"""One broker for all of these tests, a good client that runs beside each of them, and what must hold afterwards."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bad_input.raw_client import RawClient, create_topic
from tests.bad_input.watched_broker import PROBE_TOPIC, Probe, WatchedBroker

GROWTH_BYTES_MAX = 192 * 1024 * 1024
"""of the broker's memory over any one test: twice what a batch may expand to, and some"""
CYCLES_AFTER = 2
TOPICS = {
    PROBE_TOPIC: {},
    "plain": {},
    "compacted": {"cleanup_policy": "compact"},
    "packed": {"compression_type": "lz4"},
    "packed-gzip": {"compression_type": "gzip"},
    "small": {"max_message_bytes": "1000"},
    "short-segments": {"segment_bytes": "1048576", "max_message_bytes": "2000000"},
    "recent": {"message_timestamp_before_max_ms": "60000"},
}


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedBroker]:
    with WatchedBroker(tmp_path_factory.mktemp("bad-input"), {"auto.create.topics.enable": "false"}) as broker:
        with broker.connect() as client:
            for name, configs in TOPICS.items():
                assert create_topic(client, name, **configs) == 0
        yield broker


@pytest.fixture(scope="session")
def probe(running: WatchedBroker) -> Iterator[Probe]:
    probe = Probe(running).start()
    yield probe
    probe.stop()


@pytest.fixture
def broker(running: WatchedBroker, probe: Probe) -> Iterator[WatchedBroker]:
    """The broker; after the test it lives, serves its good client undisturbed, has not grown, and foresaw it all."""
    before_bytes = running.rss_bytes
    before_lines = len(running.unexpected_log_lines())
    yield running
    probe.await_cycles(CYCLES_AFTER)
    assert running.is_alive
    assert running.rss_bytes - before_bytes < GROWTH_BYTES_MAX
    assert running.unexpected_log_lines()[before_lines:] == []


@pytest.fixture
def client(broker: WatchedBroker) -> Iterator[RawClient]:
    with broker.connect() as client:
        yield client
