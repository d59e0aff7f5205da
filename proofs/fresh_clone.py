"""`make demo` twice and `make test` on a fresh clone, in an empty environment, the demos without any Java: the first
in under eight minutes, installation included, the second in under one. No test may be skipped."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIRST_DEMO_SECONDS_MAX = 480
SECOND_DEMO_SECONDS_MAX = 60
JAVA_PLACES = "/usr/lib/jvm"
WITHOUT_JAVA = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {JAVA_PLACES} && exec "$@"', "sh"]
"""A mount namespace of its own in which the place of every Java is empty; needs root."""


def run() -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="penstock-clone-") as scratch:
        clone = Path(scratch) / "clone"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        home = Path(scratch) / "home"
        home.mkdir()
        first_s = _make("demo", clone, home, WITHOUT_JAVA)
        second_s = _make("demo", clone, home, WITHOUT_JAVA)
        assert (clone / "build" / "demo-alerts.png").stat().st_size > 0
        assert first_s < FIRST_DEMO_SECONDS_MAX, f"the first make demo took {first_s:.0f} s"
        assert second_s < SECOND_DEMO_SECONDS_MAX, f"the second make demo took {second_s:.0f} s"
        test_s = _make("test", clone, home)
    return {
        "first_demo_seconds": round(first_s, 1),
        "second_demo_seconds": round(second_s, 1),
        "test_seconds": round(test_s, 1),
    }


def _make(target: str, clone: Path, home: Path, around: list[str] | None = None) -> float:
    """With nothing of our environment but a way to Python, Go, and what the system has."""
    python = shutil.which("python3.11") or sys.executable
    environment = {
        "HOME": str(home),
        "PATH": f"{Path(python).parent}:/usr/local/go/bin:/usr/bin:/bin",
        "PYTHON": python,
        "PENSTOCK_REQUIRE_ALL": "1",
    }
    began = time.monotonic()
    said = clone.with_suffix(".log")
    with said.open("wb") as log:
        command = [*(around or []), "make", target, f"PYTHON={python}"]
        done = subprocess.run(command, cwd=clone, env=environment, stdout=log, stderr=log, check=False)
    if done.returncode != 0:
        raise AssertionError(f"make {target} failed:\n{said.read_text(errors='replace')[-3000:]}")
    return time.monotonic() - began
