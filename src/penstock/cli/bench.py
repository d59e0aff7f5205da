"""`penstock bench`: throughput and latency of a cluster, with librdkafka as the load."""

from __future__ import annotations

import argparse
from typing import Any

from penstock.cli.options import check_reachable, client_config, subcommand
from penstock.cli.output import emit, fields

HELP = """\
a size takes 100, 1k or 1M. The topic is made where it is missing, with --partitions, and stays.

  penstock bench produce --messages 1000000 --size 100
  penstock bench consume --messages 1000000
  penstock bench e2e --rate 1000 --messages 10000"""
TOPIC_DEFAULT = "penstock-bench"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = HELP
    sub = parser.add_subparsers(metavar="ACTION", title="actions")
    produce = subcommand(sub, "produce", "send as fast as the cluster takes it, or at a rate", run_produce)
    consume = subcommand(sub, "consume", "read from the start as fast as it comes", run_consume)
    e2e = subcommand(sub, "e2e", "from send to receipt, one record at a time or at a rate", run_e2e)
    for parser_, messages in ((produce, 1_000_000), (consume, 1_000_000), (e2e, 5_000)):
        parser_.add_argument("-t", "--topic", default=TOPIC_DEFAULT, help=f"({TOPIC_DEFAULT})")
        parser_.add_argument("-m", "--messages", type=int, default=messages, help=f"how many ({messages})")
        parser_.add_argument("--partitions", type=int, default=1, help="of a topic that is made (1)")
        parser_.add_argument("--json", action="store_true", help="the same as --format json")
        parser_.add_argument("--no-progress", action="store_true", help="no progress on stderr")
    for parser_ in (produce, e2e):
        parser_.add_argument("-s", "--size", type=_size, default=100, metavar="BYTES", help="of a value (100)")
        parser_.add_argument("--acks", choices=["0", "1", "all"], default="all", help="(all)")
        parser_.add_argument("-z", "--compression", default="none", help="none, gzip, snappy, lz4 or zstd (none)")
    produce.add_argument("--rate", type=float, metavar="N", help="at most N records a second")
    produce.add_argument("--linger", type=float, default=5.0, metavar="MS", help="how long a batch may wait (5)")
    e2e.add_argument(
        "--rate", type=float, default=1000.0, metavar="N", help="records a second (1000); 0: one after another"
    )


def _size(text: str) -> int:
    factor = {"k": 1024, "m": 1024 * 1024}.get(text[-1:].lower(), 1)
    return int(text if factor == 1 else text[:-1]) * factor


def run_produce(args: argparse.Namespace) -> None:
    from penstock.cli.bench_load import produce

    _prepare(args)
    _show(args, produce(args, client_config(args)))


def run_consume(args: argparse.Namespace) -> None:
    from penstock.cli.bench_load import consume

    _prepare(args)
    _show(args, consume(args, client_config(args)))


def run_e2e(args: argparse.Namespace) -> None:
    from penstock.cli.bench_load import end_to_end

    _prepare(args)
    _show(args, end_to_end(args, client_config(args)))


def _prepare(args: argparse.Namespace) -> None:
    if args.json:
        args.format = "json"
    check_reachable(args.bootstrap_server)
    from penstock.client import Admin, TopicExists

    with Admin(args.bootstrap_server, timeout_s=args.timeout, config=client_config(args)) as admin:
        try:
            admin.create_topic(args.topic, args.partitions)
        except TopicExists:
            return
        while not any(t.name == args.topic for t in admin.topics()):
            pass


def _show(args: argparse.Namespace, result: dict[str, Any]) -> None:
    emit(args, result, lambda: fields({name.replace("_", " "): _figure(v) for name, v in result.items()}))


def _figure(value: Any) -> str:
    return (
        f"{value:,.3f}".rstrip("0").rstrip(".")
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )
