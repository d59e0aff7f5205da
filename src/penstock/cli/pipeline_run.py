"""`penstock pipeline run`: the pipeline in this process, its progress on the screen, its end on SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.failures import Failure, Usage
from penstock.cli.options import check_reachable, client_config, quiet_client, spark_settings
from penstock.cli.output import emit, note
from penstock.cli.pipeline import need, progress_note
from penstock.cli.pipeline_registry import registered

if TYPE_CHECKING:
    from penstock.pipeline.running import Progress, Running
    from penstock.pipeline.topology.streams import Pipeline

_LOOK_EVERY_S = 0.25
CAUSE = re.compile(r"(Caused by: )?[\w.$]+(Error|Exception|Failed|Lost): ")
"""A line of a traceback, of Python or of Java, that names an error."""
GONE = ("Py4JError", "Py4JNetworkError")
"""What is raised where nobody answers for the JVM. An exception of the JVM's own is another."""


def run_pipeline(args: argparse.Namespace, pipeline: Pipeline) -> int:
    try:
        from penstock.pipeline import running
        from penstock.pipeline.execution.errors import PipelineFailed
        from penstock.pipeline.java import JavaMissing
        from penstock.pipeline.quiet import quiet_failures
        from penstock.pipeline.spark import ConnectFailed, is_connect, session
    except ImportError as missing:
        raise need("spark", missing) from None
    from pyspark.errors import PySparkException

    is_past = args.backfill or args.from_time is not None or args.to_time is not None
    _check_together(args, is_past)
    if is_connect(args.master) and not is_past:
        _check_checkpoint(args)
    checkpoint = args.checkpoint or str(Path(args.file).parent / f".{pipeline.name}.checkpoint")
    conf, kafka = spark_settings(args), client_config(args)
    check_reachable(args.bootstrap_server)
    quiet_client()
    try:
        running.prepare_topics(pipeline.flow(), args.bootstrap_server, kafka)
        with ExitStack() as stack:
            stack.enter_context(registered(pipeline.name, args.file, args.bootstrap_server, checkpoint))
            gauges = (
                None if args.metrics_port is None else stack.enter_context(Metrics(pipeline.name, args.metrics_port))
            )
            spark = session(pipeline.name, args.master, **conf)
            if not is_connect(args.master):
                quiet_failures(spark)
            if is_past:
                return _backfill(args, pipeline, spark, kafka)
            started = running.start(
                pipeline,
                args.bootstrap_server,
                checkpoint=checkpoint,
                spark=spark,
                starting=args.starting or "latest",
                interval=args.interval,
                available_now=args.once,
                exactly_once=not args.at_least_once,
                kafka=kafka,
            )
            with spark_is_there(pipeline.name):
                return _follow(args, pipeline.name, started, gauges)
    except PySparkException as error:
        again = "" if is_past else "; what is not done yet is done at the next start"
        raise Failure(f"{pipeline.name} has ended: {cause_of(error)}{again}") from None
    except (PipelineFailed, running.TopicsMissing, JavaMissing, ConnectFailed) as error:
        raise Failure(str(error)) from None


def _check_together(args: argparse.Namespace, is_past: bool) -> None:
    if args.once and args.interval is not None:
        raise Usage("--once reads what is there and ends, --interval goes on", "leave one of them out")
    live = ("checkpoint", "once", "interval", "starting", "at_least_once", "metrics_port")
    given = [f"--{name.replace('_', '-')}" for name in live if getattr(args, name) not in (None, False)]
    if is_past and given:
        raise Usage(
            f"{given[0]} is for a live run, and this one is over a range of the past",
            "leave it out, or leave out --backfill, --from-time and --to-time",
        )


@contextmanager
def spark_is_there(name: str) -> Iterator[None]:
    """Whoever ends a service tells all its processes at once: Spark's may be gone before it is asked to stop."""
    try:
        yield
    except Exception as error:
        if isinstance(error, ConnectionError) or type(error).__name__ in GONE:
            raise Failure(
                f"{name} has ended: Spark's Java process is gone",
                "what is not done yet is done at the next start; --conf spark.driver.memory=4g, if memory was short",
            ) from None
        raise


def cause_of(error: Exception) -> str:
    """The line that says it, of the pages that Spark makes of it."""
    text = str(error).partition("\n\nJVM stacktrace")[0].strip()
    told = [line.strip() for line in text.splitlines() if CAUSE.match(line.strip())]
    return (told[-1] if told else text.splitlines()[0] if text else type(error).__name__).removesuffix(";")


def _check_checkpoint(args: argparse.Namespace) -> None:
    """A Spark Connect server keeps it, on its own machine: what is beside the file here says nothing there."""
    if args.checkpoint is None or not (os.path.isabs(args.checkpoint) or "://" in args.checkpoint):
        raise Usage(
            "with Spark Connect the pipeline's state is kept where the server runs",
            "--checkpoint names the place: a directory there, from the root on, or a URI",
        )


def _follow(args: argparse.Namespace, name: str, started: Running, gauges: Metrics | None) -> int:
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    note(f"{name} runs; Ctrl-C stops it after the batch that is under way")
    rows = 0
    ended = False
    while not ended:
        ended = started.wait(_LOOK_EVERY_S)
        if stopping.is_set():
            started.stop()
            ended = True
        for progress in started.progress():
            rows += progress.rows
            progress_note(_line(progress))
            if gauges is not None:
                gauges.show(progress)
    emit(args, {"pipeline": name, "rows": rows}, lambda: note(f"\n{name} has stopped after {rows} records"))
    return 0


def _backfill(args: argparse.Namespace, pipeline: Pipeline, spark: Any, kafka: dict[str, str]) -> int:
    from penstock.pipeline.running import backfill

    starting = {} if args.from_time is None else {"startingTimestamp": str(args.from_time)}
    ending = {} if args.to_time is None else {"endingTimestamp": str(args.to_time)}
    backfill(pipeline, args.bootstrap_server, spark=spark, starting=starting, ending=ending, kafka=kafka)
    emit(args, {"pipeline": pipeline.name, "backfilled": True}, lambda: note(f"{pipeline.name}: the range is done"))
    return 0


def _line(progress: Progress) -> str:
    lag = "" if progress.lag is None else f", lag {progress.lag}"
    return (
        f"batch {progress.batch}: {progress.rows} records in {progress.duration_ms} ms, "
        f"{progress.rows_per_second:.0f} a second{lag}"
    )


class Metrics:
    """The same figures for Prometheus. What no batch has told yet has no sample."""

    def __init__(self, name: str, port: int) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge

        self._registry = CollectorRegistry()
        self._name = name
        self._port = port

        def gauge(what: str, said: str) -> Gauge:
            return Gauge(f"penstock_pipeline_{what}", said, ["pipeline"], registry=self._registry)

        self._records = Counter("penstock_pipeline_records", "Records read.", ["pipeline"], registry=self._registry)
        self._batch = gauge("batch", "The last batch that ended.")
        self._duration = gauge("batch_seconds", "How long it took.")
        self._rate = gauge("records_per_second", "Records a second in it.")
        self._lag = gauge("lag_records", "Records that are there and not read yet.")

    def __enter__(self) -> Metrics:
        from prometheus_client import start_http_server

        try:
            self._server, _ = start_http_server(self._port, "127.0.0.1", self._registry)
        except (OSError, OverflowError) as error:
            raise Failure(
                f"--metrics-port {self._port} cannot be used: {error}", "choose another; 0 takes one that is free"
            ) from None
        self.url = f"http://127.0.0.1:{self._server.server_port}/metrics"
        note(f"metrics: {self.url}")
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def show(self, progress: Progress) -> None:
        self._records.labels(self._name).inc(progress.rows)
        self._batch.labels(self._name).set(progress.batch)
        self._duration.labels(self._name).set(progress.duration_ms / 1000)
        self._rate.labels(self._name).set(progress.rows_per_second)
        if progress.lag is not None:
            self._lag.labels(self._name).set(progress.lag)
