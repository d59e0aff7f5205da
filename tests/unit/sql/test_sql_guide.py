"""The guide's Python runs as it is printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "sql.md"


def test_the_script_of_the_page_runs(tmp_path: Path, kafka_bootstrap_servers: str):
    (script,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    environment = {**os.environ, "PENSTOCK_BOOTSTRAP_SERVERS": kafka_bootstrap_servers}
    done = subprocess.run(
        [sys.executable, "-c", script.replace("localhost:9092", kafka_bootstrap_servers)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert "de      66" in done.stdout
