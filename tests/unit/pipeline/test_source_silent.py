"""A cluster that does not answer for a while: who has heard from it before waits, who has not is told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.base.errors import KafkaError
from penstock.base.ids import TopicPartition
from penstock.pipeline.source import lookup
from penstock.pipeline.source.options import parse
from penstock.wire.errors import Disconnected

A = TopicPartition("t", 0)


class Brokers:
    """Answers every question about offsets with 5, and is silent for so many of them, ten seconds each."""

    cluster = None
    silent = 0
    now_s = 1_000.0

    def run(self, talk: Any) -> Any:
        if self.silent:
            self.silent -= 1
            self.now_s += 10
            raise Disconnected("b:1: refused")
        return {A: SimpleNamespace(offset=5)}


def asked(monkeypatch: pytest.MonkeyPatch, **options: str) -> tuple[lookup.Lookup, Brokers]:
    brokers = Brokers()
    monkeypatch.setattr(lookup.time, "monotonic", lambda: brokers.now_s)
    made = lookup.Lookup(parse({"bootstrap": "b:1", "subscribe": "t", **options}, streaming=True))
    made._client = brokers  # type: ignore[assignment]  # a stand-in for the client
    return made, brokers


def test_a_stream_waits_for_brokers_that_are_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made, brokers = asked(monkeypatch)
    made.latest([A])
    brokers.silent = 5
    assert made.latest([A]) == {A: 5}


def test_it_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    made, brokers = asked(monkeypatch, **{"kafka.default.api.timeout.ms": "20000"})
    made.latest([A])
    brokers.silent = 5
    with pytest.raises(KafkaError, match="no broker answers at b:1"):
        made.latest([A])
    assert brokers.silent == 3


def test_where_nobody_ever_answered_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    made, brokers = asked(monkeypatch)
    brokers.silent = 2
    with pytest.raises(KafkaError, match="no broker answers at b:1"):
        made.latest([A])
    assert brokers.silent == 1
