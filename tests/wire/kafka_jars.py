"""Where Apache Kafka's jars are, and what a test does when something it needs is not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CACHED_JARS = Path(__file__).parents[2] / ".cache" / "kafka" / "4.3.0" / "libs"
HOW_TO_GET_THEM = "run `python tools/fetch_kafka.py`, or set PENSTOCK_KAFKA_JARS"


def require_jars() -> Path:
    place = Path(os.environ.get("PENSTOCK_KAFKA_JARS", CACHED_JARS))
    require(any(place.glob("kafka-clients-*.jar")), "Apache Kafka 4.3.0", HOW_TO_GET_THEM)
    return place


def require(present: bool, name: str, how: str) -> None:
    """Skip the test by the name of what is missing; under PENSTOCK_REQUIRE_ALL=1 fail it."""
    if present:
        return
    text = f"{name} is missing: {how}"
    if os.environ.get("PENSTOCK_REQUIRE_ALL") == "1":
        pytest.fail(text)
    pytest.skip(text)
