"""Nothing is left out where nothing may be, whichever way a test says that it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = {
    "called": "def test_it():\n    pytest.skip('a component is missing')\n",
    "marked": "@pytest.mark.skip(reason='a component is missing')\ndef test_it(): ...\n",
    "fixture": "@pytest.fixture\ndef it():\n    pytest.skip('a component is missing')\ndef test_it(it): ...\n",
    "module": "pytest.skip('a component is missing', allow_module_level=True)\n",
}


@pytest.mark.parametrize("way", SKIPPED)
def test_what_is_skipped_fails_where_everything_is_required(way: str, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import pytest\n" + SKIPPED[way])
    for required, passes in (("0", True), ("1", False)):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "tests.components", "-p", "no:cacheprovider", "-rs", str(tmp_path)],
            cwd=ROOT,
            env={**os.environ, "PENSTOCK_REQUIRE_ALL": required},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "a component is missing" in done.stdout
        assert ("1 skipped" in done.stdout) is passes
        assert done.returncode in ((0, 5) if passes else (1, 2)), done.stdout
