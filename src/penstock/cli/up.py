"""`penstock up`: a broker in the foreground, ready for clients in a moment.

Everything lies in DIR/1: `server.properties` (which `penstock broker --config` takes too), `pid` while it runs, and
`data`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import sys
import tempfile

from penstock.broker.properties import format_properties, parse_properties
from penstock.cli.failures import Failure, Usage
from penstock.cli.options import add_format, pairs
from penstock.cli.running import PidFile, run_broker

DATA_DEFAULT = "penstock-data"
PORT_DEFAULT = 9092
NODE = 1
HELP = """\
prints `ready: HOST:PORT` on stdout when clients can connect; Ctrl-C or SIGTERM stops it cleanly; a second start on the
same directory finds everything again.

examples:
  penstock up
  penstock up --ephemeral --port 0
  penstock up --data /var/lib/penstock --set log.retention.hours=24 --set num.partitions=3"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = HELP
    parser.add_argument("--nodes", type=int, default=1, metavar="N", help="brokers to start (1)")
    parser.add_argument("--data", metavar="DIR", help=f"where everything is kept (./{DATA_DEFAULT})")
    parser.add_argument(
        "--port", type=int, default=PORT_DEFAULT, metavar="P", help="client port (9092); 0 takes free ones"
    )
    parser.add_argument("--host", default="localhost", help="address to listen on and to tell clients (localhost)")
    parser.add_argument("--ephemeral", action="store_true", help="keep nothing: data goes away at the end")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a broker configuration, by Kafka's name"
    )
    add_format(parser)
    parser.set_defaults(handler=up)


def up(args: argparse.Namespace) -> int:
    if args.nodes < 1:
        raise Usage(f"--nodes {args.nodes}: there must be at least one")
    if args.nodes > 1:
        raise Failure(
            f"--nodes {args.nodes}: clusters of several brokers are not built yet",
            "leave out --nodes to start one broker",
        )
    if args.ephemeral and args.data:
        raise Usage("--ephemeral keeps nothing, --data says where to keep it", "leave out one of the two")
    settings = pairs(args.set, "the configuration")
    directory = tempfile.mkdtemp(prefix="penstock-") if args.ephemeral else os.path.abspath(args.data or DATA_DEFAULT)
    try:
        return _run(args, os.path.join(directory, str(NODE)), settings)
    finally:
        if args.ephemeral:
            shutil.rmtree(directory, ignore_errors=True)


def _run(args: argparse.Namespace, directory: str, settings: dict[str, str]) -> int:
    os.makedirs(directory, exist_ok=True)
    with PidFile(os.path.join(directory, "pid")):
        values = _configuration(args, directory, settings)
        with open(os.path.join(directory, "server.properties"), "w") as file:
            file.write(format_properties(values))
        print(f"data in {directory}{' (removed at the end)' if args.ephemeral else ''}", file=sys.stderr)
        return run_broker(values, lambda address: _announce(args, address))


def _announce(args: argparse.Namespace, address: str) -> None:
    if args.format == "json":
        print(f'{{"ready": "{address}"}}', flush=True)
    else:
        print(f"ready: {address}", flush=True)


def _configuration(args: argparse.Namespace, directory: str, settings: dict[str, str]) -> dict[str, str]:
    """Ours, then what the file of an earlier start says, then the ports of this one, then --set."""
    path = os.path.join(directory, "server.properties")
    earlier = {}
    if os.path.exists(path):
        with open(path) as file:
            earlier = parse_properties(file.read())
    port, controller_port = (args.port, args.port + 1) if args.port else _free_ports(args.host)
    # One address for all: where the host is "every address", clients are told localhost.
    told = "localhost" if args.host in ("0.0.0.0", "::", "") else args.host
    defaults = {
        "process.roles": "broker,controller",
        "node.id": str(NODE),
        "controller.listener.names": "CONTROLLER",
        "log.dirs": os.path.join(directory, "data"),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    ports = {
        "listeners": f"PLAINTEXT://{args.host}:{port},CONTROLLER://{args.host}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{told}:{port}",
        "controller.quorum.voters": f"{NODE}@{told}:{controller_port}",
        "penstock.admin.listener": f"{args.host or 'localhost'}:{port + 2 if args.port else 0}",
    }
    return {**defaults, **earlier, "log.dirs": defaults["log.dirs"], **ports, **settings}


def _free_ports(host: str) -> tuple[int, int]:
    """Two ports that were free a moment ago: both are bound at once, so that they differ."""
    with socket.socket() as first, socket.socket() as second:
        for one in (first, second):
            one.bind((host if host not in ("", "::") else "0.0.0.0", 0))
        return first.getsockname()[1], second.getsockname()[1]
