"""Bring Apache Kafka's jars to `.cache/kafka/<version>/libs`, for the benchmarks and the conformance tests.

Penstock itself needs none of this: the jars are what it is measured and checked against. Maven resolves
tools/kafka-pom.xml from whichever repository it is configured for. Where the jars are already there, nothing happens.

    python tools/fetch_kafka.py
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

VERSION = "4.3.0"
REPOSITORY = Path(__file__).resolve().parent.parent
POM = REPOSITORY / "tools" / "kafka-pom.xml"
LIBS = REPOSITORY / ".cache" / "kafka" / VERSION / "libs"
NEEDED = tuple(
    f"{artifact}-{VERSION}.jar" for artifact in ("kafka_2.13", "kafka-server", "kafka-tools", "kafka-clients")
)
MAVEN_TIMEOUT_S = 900


class MissingComponent(Exception):
    """Something this tool cannot bring by itself; the text says what, and how to get it."""


def missing(libs: Path, needed: tuple[str, ...] = NEEDED) -> list[str]:
    """The names of the jars that must be there and are not; unless told otherwise, those no broker starts without."""
    return [name for name in needed if not (libs / name).is_file()]


def fetch(libs: Path = LIBS, pom: Path = POM, needed: tuple[str, ...] = NEEDED) -> bool:
    """Make `libs` complete; False if it was complete before."""
    if not missing(libs, needed):
        return False
    maven = _program("mvn", "Maven resolves the jars: install the package `maven` of your system")
    _program("java", "Maven and Apache Kafka run on Java 17 or later: install the package `openjdk-17-jre-headless`")
    libs.parent.mkdir(parents=True, exist_ok=True)
    # Maven copies into a directory of its own, which takes its place in one step: a broken download leaves nothing.
    with tempfile.TemporaryDirectory(dir=libs.parent, prefix="libs.") as directory:
        fresh = Path(directory) / "libs"
        _run_maven(maven, pom, fresh)
        if lacking := missing(fresh, needed):
            raise MissingComponent(f"Maven finished without an error, yet did not bring {', '.join(lacking)}")
        if libs.is_symlink():
            libs.unlink()
        elif libs.exists():
            shutil.rmtree(libs)
        fresh.rename(libs)
    return True


def _program(name: str, advice: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise MissingComponent(f"`{name}` is not on the PATH. {advice}.")
    return path


def _run_maven(maven: str, pom: Path, into: Path) -> None:
    options = [f"-Dkafka.version={VERSION}", f"-DoutputDirectory={into}"]
    command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MAVEN_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as stuck:
        raise MissingComponent(f"Maven did not finish within {MAVEN_TIMEOUT_S} s: {' '.join(command)}") from stuck
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip()[-2000:]
        raise MissingComponent(f"Maven could not resolve Apache Kafka {VERSION} ({' '.join(command)}):\n{said}")


def main(
    name: str = f"Apache Kafka {VERSION}", libs: Path = LIBS, pom: Path = POM, needed: tuple[str, ...] = NEEDED
) -> int:
    """`--if-possible`: without Maven or Java the tests go on, and skip by name what needs them."""
    optional = "--if-possible" in sys.argv[1:] and os.environ.get("PENSTOCK_REQUIRE_ALL") != "1"
    try:
        fetched = fetch(libs, pom, needed)
    except MissingComponent as problem:
        print(f"{name} is not available: {problem}", file=sys.stderr)
        return 0 if optional else 1
    print(f"{name}: {libs} ({'fetched' if fetched else 'already there'})", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
