"""What the processes load that plan and commit a write, and never write a row."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
from pyspark.sql.types import BinaryType, StructField, StructType
from penstock.pipeline.sink import writer
from penstock.pipeline.sink.messages import Written

schema = StructType([StructField("value", BinaryType())])
made = writer({"kafka.bootstrap.servers": "nowhere:1", "topic": "t"}, schema, False)
made.commit([Written(rows=3), None])
print([name for name in ("pyarrow", "numpy", "numba", "ssl", "penstock.wire.blocking") if name in sys.modules])
"""


def test_a_write_without_markers_is_planned_and_committed_without_arrow_and_without_a_client() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
