"""The load generator and the processes around it, on the null server: no broker is needed."""

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.ports import free_port

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "benchmarks"), str(REPOSITORY / "tools")]
loads, processes, run, servers, steps = (
    importlib.import_module(name) for name in ("loads", "processes", "run", "servers", "steps")
)
fetch_kafka = importlib.import_module("fetch_kafka")

needs_go = pytest.mark.skipif(
    shutil.which("go") is None, reason="Go is missing: install the package `golang` (1.22 or later)"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The load generator, built apart from the one that a benchmark may be using right now."""
    program = tmp_path_factory.mktemp("load") / "load"
    with pytest.MonkeyPatch.context() as patch:
        for module in (loads, servers):
            patch.setattr(module, "LOAD", program)
        loads.build()
        yield program


@pytest.fixture
def null_server(built, tmp_path):
    running = servers.start(servers.NullServer(), tmp_path, free_port())
    yield running
    running.kill()


@needs_go
def test_the_load_generators_own_tests_pass():
    command = ["go", "test", "./..."]
    done = subprocess.run(command, cwd=loads.SOURCE, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_go
def test_a_load_reports_what_was_acked_and_what_the_server_spent(null_server):
    loads.load(null_server, "create", topic="t", partitions=4)
    options = {"topic": "t", "records": 400_000, "connections": 2, "batch_records": 1_000}
    measured = loads.load(null_server, "produce", **options)
    assert measured.result["records"] == 400_000
    assert measured.result["requests"] == 400
    assert measured.client_cpu_s > 0
    assert measured.server_cpu_s >= 0


@needs_go
def test_a_load_that_fails_says_what_it_was_and_why(null_server):
    null_server.kill()
    with pytest.raises(servers.ServerFailed, match=r"null: .*load produce .*refused"):
        loads.load(null_server, "produce", topic="t")


@needs_go
def test_idle_connections_are_open_for_as_long_as_the_block_runs(null_server):
    with loads.IdleConnections(null_server, 50, "t"):
        assert null_server.usage().open_files >= 50


@needs_go
def test_one_quick_round_fills_the_rows_it_was_asked_for(built, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "SCRATCH", tmp_path)
    collected = run.run(["null"], {"produce_100", "consume_cpu", "e2e_p99", "start"}, 1, steps.QUICK)
    assert sorted(collected["null"]) == ["consume_cpu", "e2e_p99", "produce_100", "start"]
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_ends_at_once_is_reported_with_its_output(tmp_path):
    class Broken(servers.NullServer):
        def command(self, directory, port):
            return [sys.executable, "-c", "print('no such option'); raise SystemExit(3)"]

    with pytest.raises(servers.ServerFailed, match=r"exit code 3(.|\n)*no such option"):
        servers.start(Broken(), tmp_path, free_port())


def test_usage_counts_the_whole_family():
    child = "import sys; block = b'x' * 40_000_000; sum(range(3_000_000)); print('there', flush=True); sys.stdin.read()"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "there\n"
        used = processes.usage(process.pid)
        process.stdin.close()
    assert used.processes == 2
    assert used.rss_bytes > 40_000_000
    assert used.cpu_s > 0


def test_jars_that_are_there_are_left_alone(tmp_path, monkeypatch):
    for name in fetch_kafka.NEEDED:
        (tmp_path / name).touch()
    monkeypatch.setenv("PATH", "")
    assert fetch_kafka.fetch(tmp_path) is False


def test_without_maven_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(fetch_kafka.MissingComponent, match=r"`mvn` is not on the PATH.*install"):
        fetch_kafka.fetch(tmp_path / "libs")


def test_what_maven_cannot_resolve_leaves_nothing_behind(tmp_path, monkeypatch):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("mvn", "java"):
        (programs / name).write_text("#!/bin/sh\necho 'no such artifact' >&2\nexit 1\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    libs = tmp_path / "cache" / "libs"
    with pytest.raises(fetch_kafka.MissingComponent, match="no such artifact"):
        fetch_kafka.fetch(libs)
    assert list(libs.parent.iterdir()) == []
