"""The three-broker rows of the speed table, beside three Apache Kafka brokers: `benchmarks/cluster.py` as it is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "docs" / "proofs" / "bench-three-brokers.json"


def run() -> dict[str, object]:
    done = subprocess.run([sys.executable, "benchmarks/cluster.py"], cwd=ROOT, check=False)
    assert done.returncode == 0, f"benchmarks/cluster.py ended with {done.returncode}"
    result: dict[str, object] = json.loads(RESULT.read_text())
    return {"file": str(RESULT.relative_to(ROOT)), "result": result}
