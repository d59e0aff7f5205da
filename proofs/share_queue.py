"""A share group of 50 consumers on one partition beside Apache Kafka's and RabbitMQ's durable queue, in one run.

`benchmarks/queues.py` as it is. Clients are each project's own Java client, all in one process: 50 threads, each with a
consumer and a connection of its own, acknowledge record by record; one producer, acks=all or publisher confirms. On
share groups a record is acknowledged when the broker has answered (`commitSync` after each poll); RabbitMQ (persistent
messages, manual ack, prefetch 100) answers no acknowledgement, so there it counts when it was sent, and that all
arrived shows in the empty queue at the end. Measured at full speed, with at most 10,000 records under way, and at 500
records a second. Every record has to be accepted exactly once; those that were delivered again are counted.

RabbitMQ is the package `rabbitmq-server` (`apt-get install rabbitmq-server`), run as a node of its own, not as a
service; its client comes with `python tools/fetch_rabbitmq_client.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PUBLISHED = ROOT / "docs" / "proofs" / "bench-queues.json"
PARTIAL = ROOT / ".cache" / "bench" / "bench-queues.json"
SHORT = ("--quick", "--servers", "penstock")


def run(*options: str) -> dict[str, object]:
    """`options`: of benchmarks/queues.py; `SHORT` is Penstock alone for a moment."""
    command = [sys.executable, "benchmarks/queues.py", *options]
    done = subprocess.run(command, cwd=ROOT, check=False, stderr=subprocess.PIPE, text=True)
    print(done.stderr, file=sys.stderr)
    assert done.returncode == 0, f"benchmarks/queues.py failed: {done.stderr[-2000:]}"
    result = PARTIAL if options else PUBLISHED
    figures: dict[str, Any] = json.loads(result.read_text())
    for name, told in figures["deliveries"].items():
        assert told["sent"] == told["accepted"] > 0 and not told["accepted_twice"], f"{name}: {told}"
    return {"file": str(result.relative_to(ROOT)), "result": figures}
