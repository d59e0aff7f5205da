"""`make demo` twice and `make test` on a fresh clone, in an empty environment, the demos without any Java: the first
in under eight minutes, installation included, its messages seen after two, the second in under one. No test may be
skipped."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIRST_DEMO_SECONDS_MAX = 480
MESSAGES_SECONDS_MAX = 120
SECOND_DEMO_SECONDS_MAX = 60
MESSAGES_SEEN = b"messages arrived"
"""what the demo says when its consumer has them all, before it goes on with Spark"""
LOOK_S = 0.2
JAVA_PLACES = "/usr/lib/jvm"
WITHOUT_JAVA = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {JAVA_PLACES} && exec "$@"', "sh"]
"""A mount namespace of its own in which the place of every Java is empty; needs root."""


def run() -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="penstock-clone-") as scratch:
        clone = Path(scratch) / "clone"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        home = Path(scratch) / "home"
        home.mkdir()
        demos = show_demos(clone, home)
        test_s, _ = _make("test", clone, home)
    return {**demos, "test_seconds": round(test_s, 1)}


def show_demos(clone: Path, home: Path) -> dict[str, object]:
    first_s, messages_s = _make("demo", clone, home, WITHOUT_JAVA)
    second_s, _ = _make("demo", clone, home, WITHOUT_JAVA)
    assert (clone / "build" / "demo-alerts.png").stat().st_size > 0
    assert messages_s is not None, f"the demo did not say that its {MESSAGES_SEEN.decode()}"
    assert messages_s < MESSAGES_SECONDS_MAX, f"the first messages were seen after {messages_s:.0f} s"
    assert first_s < FIRST_DEMO_SECONDS_MAX, f"the first make demo took {first_s:.0f} s"
    assert second_s < SECOND_DEMO_SECONDS_MAX, f"the second make demo took {second_s:.0f} s"
    return {
        "first_messages_seconds": round(messages_s, 1),
        "first_demo_seconds": round(first_s, 1),
        "second_demo_seconds": round(second_s, 1),
    }


def _make(target: str, clone: Path, home: Path, around: list[str] | None = None) -> tuple[float, float | None]:
    """With nothing of our environment but a way to Python, Go, and what the system has. How long it took, and until the
    demo's messages were seen."""
    python = shutil.which("python3.11") or sys.executable
    environment = {
        "HOME": str(home),
        "PATH": f"{Path(python).parent}:/usr/local/go/bin:/usr/bin:/bin",
        "PYTHON": python,
        "PENSTOCK_REQUIRE_ALL": "1",
    }
    began = time.monotonic()
    messages_s = None
    said = clone.with_suffix(".log")
    with said.open("wb") as log:
        command = [*(around or []), "make", target, f"PYTHON={python}"]
        running = subprocess.Popen(command, cwd=clone, env=environment, stdout=log, stderr=log)
        while running.poll() is None:
            if target == "demo" and messages_s is None and MESSAGES_SEEN in said.read_bytes():
                messages_s = time.monotonic() - began
            time.sleep(LOOK_S)
    if running.returncode != 0:
        raise AssertionError(f"make {target} failed:\n{said.read_text(errors='replace')[-3000:]}")
    return time.monotonic() - began, messages_s
