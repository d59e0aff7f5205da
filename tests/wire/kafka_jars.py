"""Where Apache Kafka's jars are, and what a test does when something it needs is not there."""

from __future__ import annotations

import os
from pathlib import Path

from tests.components import require_component

CACHED_JARS = Path(__file__).parents[2] / ".cache" / "kafka" / "4.3.0" / "libs"
HOW_TO_GET_THEM = "run `python tools/fetch_kafka.py`, or set PENSTOCK_KAFKA_JARS"


def require_jars() -> Path:
    place = Path(os.environ.get("PENSTOCK_KAFKA_JARS", CACHED_JARS))
    require_component(any(place.glob("kafka-clients-*.jar")), "Apache Kafka 4.3.0", HOW_TO_GET_THEM)
    return place
