"""Which pipelines run on this machine: a small file for each, held locked while it runs."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from penstock.cli.failures import Failure

_POLL_S = 0.05


def directory() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(state) / "penstock" / "pipelines"


@contextmanager
def registered(name: str, file: str, bootstrap: str, checkpoint: str) -> Iterator[None]:
    """Known to `ls` and `stop` until the end; a second one of the same name is refused."""
    directory().mkdir(parents=True, exist_ok=True)
    path = directory() / f"{quote(name, safe='')}.json"
    with path.open("a+") as held:
        if not _lock(held.fileno()):
            held.seek(0)
            other = json.loads(held.read() or "{}").get("pid", "?")
            raise Failure(f"{name} runs already, as process {other}", f"`penstock pipeline stop {name}` stops it")
        held.truncate(0)
        told = {
            "name": name,
            "pid": os.getpid(),
            "file": os.path.abspath(file),
            "bootstrap": bootstrap,
            "checkpoint": os.path.abspath(checkpoint),
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        held.write(json.dumps(told))
        held.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def running() -> list[dict[str, Any]]:
    found = []
    for path in sorted(directory().glob("*.json")) if directory().is_dir() else []:
        with path.open() as held:
            text = held.read()
            if _lock(held.fileno()):
                path.unlink(missing_ok=True)  # its process has died
            elif text:
                found.append(json.loads(text))
    return found


def stop(name: str, timeout_s: float) -> None:
    known = running()
    one = next((one for one in known if one["name"] == name), None)
    if one is None:
        names = ", ".join(found["name"] for found in known) or "none"
        raise Failure(f"no pipeline {name} runs on this machine; running: {names}")
    os.kill(one["pid"], signal.SIGTERM)
    deadline = time.monotonic() + timeout_s
    while any(found["pid"] == one["pid"] for found in running()):
        if time.monotonic() > deadline:
            raise Failure(
                f"{name} (process {one['pid']}) is still at its batch after {timeout_s:g} s",
                "wait longer with --timeout; a batch that is broken off is repeated at the next start",
            )
        time.sleep(_POLL_S)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
