"""`format("penstock")` beside Spark's own connector at full size: `benchmarks/spark.py`, with all it requires."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "docs" / "proofs" / "bench-spark.json"


def run() -> dict[str, object]:
    done = subprocess.run([sys.executable, "benchmarks/spark.py"], cwd=ROOT, check=False)
    assert done.returncode == 0, f"benchmarks/spark.py ended with {done.returncode}"
    result = json.loads(RESULT.read_text())
    missed = [row["work"] for row in result["rows"].values() if row.get("met") is False]
    assert not missed, f"{RESULT.name} has what is not met: {'; '.join(missed)}"
    return {"file": str(RESULT.relative_to(ROOT)), "result": result}
