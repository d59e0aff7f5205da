"""The proof of the shared queue in its short form: Penstock alone, for seconds."""

from __future__ import annotations

import shutil

from proofs import share_queue
from tests.components import require_component
from tests.conformance.apache import CACHED_JARS, VERSION


def test_fifty_consumers_accept_every_record_of_one_partition_once():
    require_component(shutil.which("javac") is not None, "Java", "install a JDK 17 or newer")
    require_component(CACHED_JARS.is_dir(), f"Apache Kafka {VERSION}", "run `python tools/fetch_kafka.py`")
    result = share_queue.run(*share_queue.SHORT)["result"]
    told = result["deliveries"]["penstock"]
    assert result["consumers"] == 50
    assert told["sent"] == told["accepted"] > 1_000
    assert told["accepted_twice"] == 0
