"""A ready SparkSession: `session()` for this machine, `session(master=...)` for a cluster or a Spark Connect server.

`format("penstock")` needs nothing of this: it works in anybody's session. What is set here saves a newcomer the
settings that a local pipeline wants.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock.pipeline import interpreter
from penstock.pipeline.java import find_java
from penstock.pipeline.quiet import quietly

LOCAL_MASTER = "local[*]"
CONNECT_SCHEME = "sc://"
CONNECT_PORT = 15002
CONNECT_TIMEOUT_S = 10.0
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
LOGGING = Path(__file__).with_name("log4j2.properties")

RUNTIME = {
    # Event times mean the same on every machine.
    "spark.sql.session.timeZone": "UTC",
    # Without it Spark fails a reader that offers to take filters.
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Ten thousand large rows at a time would leave the processor's caches between Spark and Python; these stay.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2000000",
    # A replayed batch must give each task the rows it had before: nothing may regroup them at run time.
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}
"""What any session of a pipeline wants, and what a Spark Connect server takes."""

QUICK_LAUNCHER = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For the short-lived JVM that only puts together the command line of the real one."""
SOCKETS = {
    # Rows pass between Spark and Python of one machine for half of what a loopback connection costs the kernel.
    "spark.python.unix.domain.socket.enabled": str(hasattr(socket, "AF_UNIX")).lower(),
    # A worker that Spark lets go after an idle minute fails to say goodbye over such a socket: in one piece, which
    # `quiet` can leave out.
    "spark.python.daemon.killWorkerOnFlushFailure": "false",
}
QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}


def session(name: str = "penstock", master: str | None = None, **conf: str) -> SparkSession:
    """The session of this process, made if there is none.

    `master` is Spark's: local[*] unless given; sc://HOST:PORT connects to a Spark Connect server. `conf` takes Spark's
    own names and wins over what is set here: `session(**{"spark.driver.memory": "4g"})`.
    """
    _check_names(conf)
    if master is not None and is_connect(master):
        return _connect(name, master, conf)
    settings = {**QUIET, **RUNTIME}
    builder = SparkSession.builder.appName(name)
    # spark-submit has started the JVM, and knows the master, Java and Python.
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if master is not None or not submitted:
        chosen = master or LOCAL_MASTER
        builder = builder.master(chosen)
        settings |= _local_settings(chosen)
        _name_python(chosen)
    if not submitted and SparkContext._gateway is None:
        os.environ["JAVA_HOME"] = str(find_java())
        os.environ.setdefault("SPARK_LAUNCHER_OPTS", QUICK_LAUNCHER)
        given = conf.pop(JAVA_OPTIONS, "")
        settings |= SOCKETS
        settings[JAVA_OPTIONS] = f"-Dlog4j2.configurationFile={shlex.quote(LOGGING.as_uri())} {given}".strip()
    for key, value in (settings | conf).items():
        builder = builder.config(key, value)
    if submitted or SparkContext._gateway is not None:
        return builder.getOrCreate()
    with quietly():
        return builder.getOrCreate()


class ConnectFailed(RuntimeError):
    """There is no talking to a Spark Connect server; the text says why and what to do."""


def is_connect(master: str | None) -> bool:
    return master is not None and master.startswith(CONNECT_SCHEME)


def _connect(name: str, url: str, conf: dict[str, str]) -> SparkSession:
    # PySpark itself ends the process, without an error, where one of them is missing.
    missing = [module for module in ("grpc", "grpc_status") if importlib.util.find_spec(module) is None]
    if missing:
        raise ConnectFailed(
            f"{url} is a Spark Connect server, and what its client needs is not installed ({', '.join(missing)}): "
            "pip install 'penstock[connect]'"
        )
    _check_answers(url)
    builder = SparkSession.builder.appName(name).remote(url)
    for key, value in (RUNTIME | conf).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _check_answers(url: str) -> None:
    """PySpark itself would try for minutes."""
    try:
        parts = urlsplit(url)
        where = (parts.hostname or "", parts.port or CONNECT_PORT)
        socket.create_connection(where, CONNECT_TIMEOUT_S).close()
    except (OSError, ValueError) as error:
        raise ConnectFailed(f"no Spark Connect server answers at {url}: {error}") from None


def _local_settings(master: str) -> dict[str, str]:
    """A local run: as many shuffle partitions as cores, and no name of this machine to be looked up."""
    match = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master)
    if match is None:
        return {}
    count = match.group(1) or "1"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {
        "spark.sql.shuffle.partitions": str(cores) if count == "*" else count,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.python.daemon.module": interpreter.DAEMON,
    }


def _name_python(master: str) -> None:
    """Local workers are this very Python, with what is installed in it; a cluster's may be elsewhere."""
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        if master.startswith("local"):
            os.environ[variable] = interpreter.find()
        else:
            os.environ.setdefault(variable, sys.executable)


def _check_names(conf: dict[str, str]) -> None:
    for name in conf:
        if not name.startswith("spark."):
            raise TypeError(f"{name!r} is no setting of Spark: those of session(**conf) begin with 'spark.'")
