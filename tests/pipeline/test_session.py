"""`penstock.pipeline.session()`: the Spark that a newcomer gets."""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import Any

import pytest

from penstock.pipeline import session
from penstock.pipeline.spark import ConnectFailed


def test_workers_are_this_python_and_times_are_utc(spark: Any) -> None:
    def where(batches: Any) -> Any:
        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable]})

    assert {row.python for row in spark.range(2).mapInArrow(where, "python string").collect()} == {sys.executable}
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_a_second_call_gives_the_running_session(spark: Any) -> None:
    assert session() is spark


def test_a_setting_that_is_not_sparks_is_refused_by_name(spark: Any) -> None:
    with pytest.raises(TypeError, match="'memory' is no setting of Spark"):
        session(memory="4g")


def test_importing_the_package_loads_no_pyspark() -> None:
    code = "import sys, penstock.pipeline; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_a_connect_server_needs_a_client_and_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConnectFailed, match=r"\(grpc, grpc_status\): pip install 'penstock\[connect\]'"):
        session(master="sc://nowhere:15002")


def test_a_connect_server_that_does_not_answer_is_told_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening: nobody answers there
        port = taken.getsockname()[1]
        with pytest.raises(ConnectFailed, match=f"no Spark Connect server answers at sc://127.0.0.1:{port}: .*refused"):
            session(master=f"sc://127.0.0.1:{port}")
