"""`penstock pipeline`: run, look at, list, stop and test pipelines that are defined in Python files."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from typing import TYPE_CHECKING

from penstock.cli.failures import Failure
from penstock.cli.offsets import parse_time
from penstock.cli.options import add_format, subcommand
from penstock.cli.output import emit, note, table

if TYPE_CHECKING:
    from penstock.pipeline.topology.streams import Pipeline


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar="COMMAND")
    _configure_run(subcommand(commands, "run", "run a pipeline: live, once, or over a range of the past", run))
    picture = commands.add_parser("dry-run", help="print a pipeline's plan as a graph, and run nothing")
    picture.set_defaults(handler=dry_run)
    _add_file(picture)
    picture.add_argument("--mermaid", action="store_true", help="as a Mermaid flow chart")
    add_format(picture)
    listing = commands.add_parser("ls", help="the pipelines that run on this machine")
    listing.set_defaults(handler=ls)
    add_format(listing)
    stopping = commands.add_parser("stop", help="stop a pipeline after the batch that is under way")
    stopping.set_defaults(handler=stop)
    stopping.add_argument("pipeline", metavar="NAME")
    stopping.add_argument("--timeout", type=float, default=90.0, metavar="S", help="how long to wait for it (90)")
    add_format(stopping)
    testing = commands.add_parser("test", help="feed rows through a pipeline without a broker, and show what comes out")
    testing.set_defaults(handler=test)
    _add_file(testing)
    testing.add_argument(
        "rows", metavar="ROWS", help='JSON lines: {"topic":..., "key":..., "value":..., "timestamp":...}'
    )
    testing.add_argument(
        "--expect", metavar="FILE", help="JSON lines that must come out, no more and no less, in order"
    )
    add_format(testing)


def _add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a Python file that makes a Pipeline")
    parser.add_argument("--name", help="which pipeline, where the file makes several")


def _configure_run(parser: argparse.ArgumentParser) -> None:
    _add_file(parser)
    parser.add_argument(
        "--checkpoint", metavar="DIR", help="where its state is kept (beside the file: .NAME.checkpoint)"
    )
    parser.add_argument("--master", help="Spark's master, or sc://HOST:PORT for Spark Connect (local[*])")
    parser.add_argument("--once", action="store_true", help="end when everything that is there now has been read")
    parser.add_argument("--starting", choices=["earliest", "latest"], help="without a checkpoint (latest)")
    parser.add_argument("--interval", metavar="TIME", help='begin a batch that often, for example "1 second"')
    parser.add_argument("--at-least-once", action="store_true", help="write without transactions: rows may repeat")
    parser.add_argument("--metrics-port", type=int, metavar="PORT", help="serve metrics for Prometheus there")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark")
    past = parser.add_argument_group("over a range of the past, instead of live")
    past.add_argument(
        "--from-time",
        type=parse_time,
        metavar="TIME",
        help="from the records of that time on: -1h, 2026-01-01T12:00:00Z, or ms since 1970",
    )
    past.add_argument("--to-time", type=parse_time, metavar="TIME", help="up to the records of that time")
    past.add_argument("--backfill", action="store_true", help="from the earliest record to the latest")


def run(args: argparse.Namespace) -> int:
    from penstock.cli.pipeline_run import run_pipeline

    return run_pipeline(args, load(args))


def dry_run(args: argparse.Namespace) -> int:
    from penstock.pipeline.execution.staging import Staging
    from penstock.pipeline.topology import picture

    flow = load(args).flow()
    stages = Staging(flow.nodes).stage
    if args.mermaid:
        print(picture.as_mermaid(flow, stages))
    else:
        told = {"pipeline": flow.name, "stages": max(stages.values(), default=0), "nodes": picture.drawn(flow, stages)}
        emit(args, told, lambda: print(picture.as_text(flow, stages)))
    return 0


def ls(args: argparse.Namespace) -> int:
    from penstock.cli.pipeline_registry import running

    found = running()
    rows = [(one["name"], one["pid"], one["bootstrap"], one["started"], one["file"]) for one in found]
    emit(args, found, lambda: table(("NAME", "PID", "CLUSTER", "STARTED", "FILE"), rows))
    return 0


def stop(args: argparse.Namespace) -> int:
    from penstock.cli.pipeline_registry import stop as stop_process

    stop_process(args.pipeline, args.timeout)
    emit(args, {"stopped": args.pipeline}, lambda: print(f"{args.pipeline} has stopped"))
    return 0


def test(args: argparse.Namespace) -> int:
    from penstock.cli.pipeline_test import run_rows

    return run_rows(args, load(args))


def load(args: argparse.Namespace) -> Pipeline:
    from penstock.pipeline.files import FileError, pipeline_in

    try:
        return pipeline_in(args.file, args.name)
    except FileError as error:
        raise Failure(str(error)) from None
    except Exception as error:
        raise Failure(
            f"{args.file} cannot be loaded: {_told(error, args.file)}", "run it with python to see all of it"
        ) from error


def _told(error: Exception, file: str) -> str:
    """With the line of the file; a syntax error knows it by itself."""
    frames = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if os.path.abspath(frame.f_code.co_filename) == os.path.abspath(file)]
    where = f", line {lines[-1]}" if lines and not isinstance(error, SyntaxError) else ""
    return f"{type(error).__name__}: {error}{where}"


def need(extra: str, missing: ImportError) -> Failure:
    return Failure(f"this needs {missing.name}, which is not installed", f"pip install 'penstock[{extra}]'")


def progress_note(text: str) -> None:
    """Over the line before, on a terminal; else on a line of its own."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
    else:
        note(text)
