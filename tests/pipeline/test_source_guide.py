"""The page about reading from Spark: its Python runs as it is printed, and it names every option that there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from penstock.pipeline.source.datasource import FORMAT_NAMES
from penstock.pipeline.source.options import READ_NAMES
from tests.pipeline.conftest import Running

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "reading-from-spark.md"


def test_the_script_of_the_page_runs(spark: Any, penstock_cluster: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    (script,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    monkeypatch.setenv("PENSTOCK_BOOTSTRAP_SERVERS", penstock_cluster.bootstrap)
    exec(compile(script, str(PAGE), "exec"), {})


def test_the_page_names_every_option() -> None:
    page = PAGE.read_text()
    assert [name for name in (*READ_NAMES, *FORMAT_NAMES) if name not in page] == []
