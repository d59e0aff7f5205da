"""`penstock up`: a broker, or a cluster of them, in the foreground, ready for clients in a moment.

One broker runs in this process; several are processes of their own. Everything of node i lies in DIR/i:
`server.properties` (which `penstock broker --config` takes too), `pid` while it runs, and `data`. Node i listens on
port P+10(i-1), its controller one above.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile

from penstock.cli.failures import Usage
from penstock.cli.options import add_format
from penstock.cli.running import PidFile, announce, run_broker
from penstock.cli.up_layout import Layout
from penstock.cli.up_nodes import run_nodes
from penstock.cli.up_settings import PORT_STEP, asked, check, configurations, refuse_own, refuse_port

DATA_DEFAULT = "penstock-data"
PORT_DEFAULT = 9092
HELP = """\
prints `ready: HOST:PORT[,HOST:PORT...]` on stdout when clients can connect; Ctrl-C or SIGTERM stops it cleanly; a
second start on the same directory finds everything again.

examples:
  penstock up
  penstock up --nodes 3
  penstock up --ephemeral --port 0
  penstock up --data /var/lib/penstock --set log.retention.hours=24 --set num.partitions=3

with --nodes, each broker is a process of its own; from three on, topics have three copies, two of which must be in
sync. a broker that dies is reported and not restarted: penstock broker --config DIR/<node>/server.properties brings it
back."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = HELP
    parser.add_argument(
        "--nodes", type=int, metavar="N", help="brokers to start (as many as DIR has; 1 where it is new)"
    )
    parser.add_argument("--data", metavar="DIR", help=f"where everything is kept (./{DATA_DEFAULT})")
    parser.add_argument(
        "--port",
        type=int,
        default=PORT_DEFAULT,
        metavar="P",
        help=f"client port of the first (9092), {PORT_STEP} more for each; 0 takes free ones",
    )
    parser.add_argument("--host", default="localhost", help="address to listen on and to tell clients (localhost)")
    parser.add_argument("--ephemeral", action="store_true", help="keep nothing: data goes away at the end")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a broker configuration, by Kafka's name"
    )
    add_format(parser)
    parser.set_defaults(handler=up)


def up(args: argparse.Namespace) -> int:
    if args.nodes is not None and args.nodes < 1:
        raise Usage(f"--nodes {args.nodes}: there must be at least one")
    if args.ephemeral and args.data:
        raise Usage("--ephemeral keeps nothing, --data says where to keep it", "leave out one of the two")
    if args.data == "":
        raise Usage("--data is empty", f"name a directory, or leave it out for ./{DATA_DEFAULT}")
    settings = asked(args.set)
    known = None if args.ephemeral else os.path.abspath(args.data or DATA_DEFAULT)
    there = [] if known is None else Layout(known).nodes()
    nodes = _nodes(args.nodes, there, known)
    refuse_port(args.port, len(nodes))
    refuse_own(settings, len(nodes), known if there else None)
    directory = known or tempfile.mkdtemp(prefix="penstock-")
    try:
        return _run(args, Layout(directory), nodes, settings)
    finally:
        if args.ephemeral:
            shutil.rmtree(directory, ignore_errors=True)


def _run(args: argparse.Namespace, layout: Layout, nodes: list[int], settings: dict[str, str]) -> int:
    """Whatever can be refused is, before anything is written."""
    layout.refuse_running(nodes)
    values = configurations(layout, nodes, args.port, args.host, settings)
    check(layout, values)
    removed = " (removed at the end)" if args.ephemeral else ""
    if len(nodes) > 1:
        with layout.written(values) as files:
            print(f"data in {layout.directory}{removed}", file=sys.stderr)
            return run_nodes(layout, nodes, files.keep, lambda addresses: announce(args.format, addresses))
    (node,) = nodes
    os.makedirs(layout.node(node), exist_ok=True)
    with PidFile(layout.node(node, "pid")), layout.written(values) as files:
        print(f"data in {layout.node(node)}{removed}", file=sys.stderr)

        def ready(address: str) -> None:
            files.keep()
            announce(args.format, address)

        return run_broker(values[node], ready)


def _nodes(asked: int | None, there: list[int], directory: str | None) -> list[int]:
    """As many as asked for; else those of the directory's earlier starts; else one."""
    count = asked or len(there) or 1
    if count < len(there):
        raise Usage(
            f"--nodes {count}: {directory} holds a cluster of {len(there)}",
            "leave out --nodes to start all; penstock broker --config starts one alone",
        )
    return list(range(1, count + 1))
