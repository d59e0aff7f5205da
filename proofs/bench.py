"""The one-broker rows of the speed table, on Penstock and Apache Kafka in one run: `benchmarks/run.py` as it is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "docs" / "proofs" / "bench-one-broker.json"


def run() -> dict[str, object]:
    done = subprocess.run([sys.executable, "benchmarks/run.py"], cwd=ROOT, check=False)
    assert done.returncode == 0, f"benchmarks/run.py ended with {done.returncode}"
    result: dict[str, object] = json.loads(RESULT.read_text())
    return {"file": str(RESULT.relative_to(ROOT)), "result": result}
