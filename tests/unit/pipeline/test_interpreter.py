"""What Spark is told is its Python: the same, but that workers are forked from our daemon."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
import zipfile
from pathlib import Path
from zipimport import zipimporter

import pyspark
import pytest

from penstock.pipeline import daemon, interpreter


def test_sparks_daemon_is_replaced_by_ours_and_nothing_else_is() -> None:
    asked = ["-m", "pyspark.daemon", "pyspark.sql.worker.plan_data_source_read"]
    assert interpreter.replaced(asked) == ["-m", "penstock.pipeline.daemon", asked[2]]
    for other in (["-m", "pyspark.worker"], ["-c", "pass"], []):
        assert interpreter.replaced(other) == other


def test_it_is_this_python() -> None:
    found = interpreter.find()
    assert Path(found).name == "penstock-python"
    told = subprocess.run(
        [found, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True, timeout=60, check=True
    )
    assert told.stdout.strip() == sys.executable


def test_where_it_is_not_installed_python_itself_serves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert interpreter.find() == str(tmp_path / "python")


@pytest.mark.parametrize("worker", daemon.LOADED)
def test_what_a_worker_runs_and_needs_is_there(worker: str) -> None:
    assert importlib.util.find_spec(worker) is not None
    code = f"from penstock.pipeline.daemon import load; load({worker!r}); import sys; print('numba' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout.strip() == str(worker == "pyspark.worker")


def test_a_worker_has_as_much_room_on_the_way_to_spark_as_the_system_allows() -> None:
    def room(to_spark: socket.socket, _authenticated: bool) -> int:
        return to_spark.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)

    allowed = min(daemon.ROOM_BYTES, int(Path("/proc/sys/net/core/wmem_max").read_text()))
    ours, sparks = socket.socketpair()
    with ours, sparks:
        assert daemon.with_room(room)(ours, True) == 2 * allowed  # Linux counts what it needs itself as well


def test_a_connection_of_tcp_is_left_to_find_its_room() -> None:
    with socket.socket() as connection:
        before = connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        assert daemon.with_room(lambda to_spark, _: 7)(connection, True) == 7
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == before


def test_an_archive_of_modules_is_read_anew_only_where_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, read = tmp_path / "modules.zip", []
    with zipfile.ZipFile(archive, "w") as first:
        first.writestr("one.py", "")
    found = zipimporter(str(archive))
    monkeypatch.setitem(sys.path_importer_cache, str(archive), found)
    archives = daemon.Archives(lambda of: read.append(of.archive))
    archives.invalidate(found)
    assert read == [], "it is as it was when the daemon began"
    with zipfile.ZipFile(archive, "a") as more:
        more.writestr("another.py", "")
    archives.invalidate(found)
    archives.invalidate(found)
    assert read == [str(archive)]
    archive.unlink()
    archives.invalidate(found)
    assert read == [str(archive)] * 2, "what is to be done about one that is gone is for Python to know"


def test_an_archive_that_came_later_is_read() -> None:
    read = []
    archives = daemon.Archives(lambda of: read.append(of.archive))
    (later,) = Path(pyspark.__file__).parent.glob("python/lib/pyspark.zip")
    found = zipimporter(str(later))
    archives.invalidate(found)
    archives.invalidate(found)
    assert read == [str(later)]
