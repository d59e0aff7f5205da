"""`penstock config`: configurations of topics, brokers and groups."""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.cli.failures import Failure, Usage
from penstock.cli.options import add_dry_run, make_admin, pairs, subcommand
from penstock.cli.output import emit, note, table

if TYPE_CHECKING:
    from penstock.client import Admin, ConfigValue

FROM_THE_FILE = (
    "listeners",
    "listener.security.protocol.map",
    "group.consumer.assignment.interval.ms",
    "group.share.assignment.interval.ms",
    "group.streams.assignment.interval.ms",
)
"""which Apache Kafka lets change while a broker runs (docs/deviations.md)"""
KINDS = ["topic", "broker", "group"]
NAME_HELP = "topic, group, or broker id; for `set broker`, 'default' means all brokers"


def configure(parser: argparse.ArgumentParser) -> None:
    sub = parser.add_subparsers(metavar="ACTION", title="actions")
    get = subcommand(sub, "get", "show what is set, or everything with --all", get_config)
    _resource(get)
    get.add_argument("key", nargs="*", help="only these, or globs such as 'retention*'")
    get.add_argument("-a", "--all", action="store_true", help="the defaults too")
    set_ = subcommand(sub, "set", "set configurations; the others stay as they are", set_config)
    _resource(set_)
    set_.add_argument("setting", nargs="+", metavar="KEY=VALUE")
    add_dry_run(set_)
    unset = subcommand(sub, "unset", "back to the default", unset_config)
    _resource(unset)
    unset.add_argument("key", nargs="+")
    add_dry_run(unset)


def _resource(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("name", help=NAME_HELP)


def get_config(args: argparse.Namespace) -> None:
    with make_admin(args) as admin:
        _check_broker(args, admin)
        print_configs(args, admin.config(args.kind, _name(args)), args.key, everything=args.all)


def set_config(args: argparse.Namespace) -> None:
    _alter(args, pairs(args.setting, "the setting"), [])


def unset_config(args: argparse.Namespace) -> None:
    if any("=" in key for key in args.key):
        raise Usage("unset takes names only", "leave out the value: penstock config unset topic orders retention.ms")
    _alter(args, {}, args.key)


def _alter(args: argparse.Namespace, changes: dict[str, str], unset: list[str]) -> None:
    with make_admin(args) as admin:
        _check_broker(args, admin)
        admin.alter_config(args.kind, _name(args), changes, unset, dry_run=args.dry_run)
    result = {"kind": args.kind, "name": args.name, "set": changes, "unset": unset, "dry_run": args.dry_run}
    verb = "would alter" if args.dry_run else "altered"
    emit(args, result, lambda: print(f"{verb} {args.kind} {args.name}"))
    if args.kind == "broker":
        sys.stdout.flush()
        _tell_ineffective(changes)


def _tell_ineffective(names: Iterable[str]) -> None:
    """A broker of ours keeps and describes these, and goes on as before; Apache Kafka's may well take them."""
    from penstock.base.configs.broker import BROKER_CONFIGS
    from penstock.base.configs.own import OWN_CONFIGS

    fixed = [name for name in names if name in OWN_CONFIGS or name in FROM_THE_FILE]
    idle = [name for name in names if name in BROKER_CONFIGS and not BROKER_CONFIGS[name].effect]
    if fixed:
        note(
            f"{', '.join(fixed)}: a Penstock broker takes this at its next start, and from its properties file "
            "alone: set it there, and restart the broker"
        )
    if idle:
        note(f"{', '.join(idle)}: without effect on a Penstock broker")


def _name(args: argparse.Namespace) -> str:
    return "" if args.kind == "broker" and args.name == "default" else str(args.name)


def _check_broker(args: argparse.Namespace, admin: Admin) -> None:
    """A client asks a broker for its own configurations: for one that is not there it would wait until it gives up."""
    if args.kind != "broker" or args.name == "default":
        return
    ids = [str(broker.id) for broker in admin.cluster().brokers]
    if args.name not in ids:
        hint = f"brokers of the cluster: {', '.join(ids)}; `penstock cluster` says where they are"
        raise Failure(f"there is no broker {args.name}", hint)


def print_configs(args: argparse.Namespace, found: list[ConfigValue], keys: list[str], *, everything: bool) -> None:
    if keys:
        shown = [c for c in found if any(fnmatch.fnmatchcase(c.name, key) for key in keys)]
        absent = [key for key in keys if not any(fnmatch.fnmatchcase(c.name, key) for c in found)]
        if absent:
            raise Failure(f"there is no configuration {', '.join(absent)}", "--all lists them")
    else:
        shown = [c for c in found if everything or c.source not in ("default", "unknown", "static")]
    rows = [(c.name, "(hidden)" if c.sensitive else c.value, c.source) for c in shown]
    emit(args, shown, lambda: table(["NAME", "VALUE", "SOURCE"], rows))
