"""`penstock broker`: one broker from a server.properties file, with Kafka's names; KAFKA_* variables override it."""

from __future__ import annotations

import argparse
import os

from penstock.broker.properties import from_environment, parse_properties
from penstock.cli.failures import Failure
from penstock.cli.options import add_format
from penstock.cli.running import PidFile, announce, run_broker
from penstock.cli.up_settings import asked

HELP = """\
the environment overrides the file, as in the apache/kafka image: KAFKA_LOG_RETENTION_MS is log.retention.ms, a dot
becomes one underscore, an underscore two, a dash three.

  penstock broker --config penstock-data/1/server.properties"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = HELP
    parser.add_argument("-c", "--config", metavar="FILE", help="a server.properties file")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="overrides file and environment"
    )
    add_format(parser)
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    written = _read(args.config) if args.config else {}
    values = written | from_environment(os.environ) | asked(args.set)
    if not values:
        raise Failure(
            "there is no configuration", "give --config FILE or KAFKA_* variables; `penstock up` makes one itself"
        )
    beside = os.path.dirname(os.path.abspath(args.config)) if args.config else None
    if beside is None or not _is_of_up(beside, written):
        return run_broker(values, lambda address: announce(args.format, address))
    with PidFile(os.path.join(beside, "pid")):
        return run_broker(values, lambda address: announce(args.format, address))


def _is_of_up(directory: str, written: dict[str, str]) -> bool:
    """Whether it is a node's directory of `penstock up`, whose tools look for the process id there. Its data may be
    gone, and is made anew then."""
    data = os.path.join(directory, "data")
    return os.path.isdir(data) or os.path.realpath(written.get("log.dirs", "")) == os.path.realpath(data)


def _read(path: str) -> dict[str, str]:
    try:
        with open(path) as file:
            return parse_properties(file.read())
    except FileNotFoundError:
        raise Failure(f"there is no file {path!r}", "`penstock up` writes one to DIR/1/server.properties") from None
