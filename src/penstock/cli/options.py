"""Options that many commands share, and the clients made from them."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.cli.failures import Failure, Usage

if TYPE_CHECKING:
    from penstock.client import Admin

Subparsers = Any
REACH_TIMEOUT_S = 3.0
FORMATS = ("text", "json")
BOOTSTRAP_VARIABLE = "PENSTOCK_BOOTSTRAP_SERVERS"


def add_format(parser: argparse.ArgumentParser, formats: Sequence[str] = FORMATS) -> None:
    parser.add_argument("--format", choices=formats, default="text", help="how results are printed (text)")


def add_client(parser: argparse.ArgumentParser, formats: Sequence[str] = FORMATS) -> None:
    """--bootstrap-server, -X, --timeout, --format."""
    group = parser.add_argument_group("cluster")
    group.add_argument(
        "-b",
        "--bootstrap-server",
        metavar="HOST:PORT",
        default=os.environ.get(BOOTSTRAP_VARIABLE) or "localhost:9092",
        help=f"a broker to ask first, or several with commas (localhost:9092, or ${BOOTSTRAP_VARIABLE})",
    )
    group.add_argument(
        "-X", metavar="KEY=VALUE", action="append", default=[], dest="properties", help="a librdkafka property"
    )
    group.add_argument("--timeout", type=float, default=15.0, metavar="S", help="how long to wait for an answer (15)")
    add_format(parser, formats)


def add_yes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--dry-run", action="store_true", help="only say what would be done")


def subcommand(subparsers: Subparsers, name: str, summary: str, handler: Any, **more: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **more,
    )
    parser.set_defaults(handler=handler)
    add_client(parser)
    return parser


def pairs(texts: list[str], what: str) -> dict[str, str]:
    """["a=1", "b=2"] as a dict."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise Usage(f"{what} {text!r} is not of the form key=value")
        found[name] = value
    return found


def spark_settings(args: argparse.Namespace) -> dict[str, str]:
    """Those of `--conf`."""
    conf = pairs(args.conf, "the setting of Spark")
    for name in conf:
        if not name.startswith("spark."):
            raise Usage(f"--conf {name}={conf[name]}: the names of Spark's settings begin with spark.")
    return conf


def client_config(args: argparse.Namespace) -> dict[str, str]:
    return pairs(args.properties, "the property")


def check_reachable(servers: str) -> None:
    """Fails at once, and with a good text, where nothing listens; librdkafka would try for as long as its timeout."""
    first: Exception | None = None
    for server in servers.split(","):
        host, _, port = server.rpartition("://")[2].strip().rpartition(":")
        if not port.isdigit():
            host, port = server.strip(), "9092"
        try:
            socket.create_connection((host.strip("[]"), int(port)), REACH_TIMEOUT_S).close()
            return
        except (OSError, UnicodeError) as exc:  # the latter of a name that cannot be one
            first = first or exc
    raise Failure(
        f"nothing listens on {servers}: {getattr(first, 'strerror', None) or first or 'no address given'}",
        "start a broker with `penstock up`, or name another with -b HOST:PORT",
    )


def make_admin(args: argparse.Namespace) -> Admin:
    check_reachable(args.bootstrap_server)
    from penstock.client import Admin

    quiet_client()
    return Admin(args.bootstrap_server, timeout_s=args.timeout, config=client_config(args))


def quiet_client() -> None:
    """The library's own log lines are noise on a terminal: what matters comes as an error with a text."""
    import logging

    logging.getLogger("penstock.client").addHandler(logging.NullHandler())
    logging.getLogger("penstock.client").propagate = False


def confirm(args: argparse.Namespace, question: str) -> None:
    """Goes on only with --yes or a "y" typed at a terminal."""
    if args.yes:
        return
    if not sys.stdin.isatty():
        raise Failure(f"{question} This needs an answer, and there is no terminal to ask on.", "add --yes to go ahead")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Failure("not done", None)
