"""The Python in the guide's page about the lake runs as it is printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import Running

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "lake.md"


def test_the_script_of_the_page_runs(
    spark: Any, penstock_cluster: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (script,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    monkeypatch.setenv("PENSTOCK_BOOTSTRAP_SERVERS", penstock_cluster.bootstrap)
    monkeypatch.chdir(tmp_path)
    exec(compile(script, str(PAGE), "exec"), {})
