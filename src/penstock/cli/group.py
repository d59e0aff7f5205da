"""`penstock group`: groups, their members, lag and offsets."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from penstock.cli import share_groups, streams_groups
from penstock.cli.bounds import Lags, Standing, standing
from penstock.cli.failures import Failure, Usage
from penstock.cli.offsets import Place, parse_place
from penstock.cli.options import add_dry_run, add_yes, confirm, make_admin, subcommand
from penstock.cli.output import emit, fields, is_json, note, table
from penstock.cli.own_client import own_client

if TYPE_CHECKING:
    from penstock.client import Admin, GroupListing, TopicPartition

SHARE, STREAMS = "share", "streams"
_OTHERS = {SHARE: share_groups, STREAMS: streams_groups}
"""by the type of a group, who shows those that confluent-kafka does not know"""

RESET_HELP = """\
places:  start  end  1234  +5  -10  @-1h  @2026-01-01T00:00:00  shift:+100  shift:-100

  penstock group reset billing --to start --dry-run
  penstock group reset billing --to @-1h --topic orders --yes"""


def configure(parser: argparse.ArgumentParser) -> None:
    sub = parser.add_subparsers(metavar="ACTION", title="actions")
    subcommand(sub, "ls", "list groups", list_groups, aliases=["list"])
    describe = subcommand(sub, "describe", "state, members and lag", describe_group)
    describe.add_argument("group")
    members = subcommand(sub, "members", "who is in the group and what they read", list_members)
    members.add_argument("group")
    lag = subcommand(sub, "lag", "how far groups are behind", show_lag)
    lag.add_argument("group", nargs="*", help="all groups where none is named")
    lag.add_argument("-w", "--watch", type=float, nargs="?", const=2.0, metavar="S", help="again every S seconds (2)")
    lag.add_argument("--total", action="store_true", help="one line a group and topic")

    reset = subcommand(sub, "reset", "move a group's offsets while it has no members", reset_offsets, epilog=RESET_HELP)
    reset.add_argument("group")
    reset.add_argument("--to", required=True, metavar="PLACE", help="where to, see below")
    reset.add_argument(
        "-t", "--topic", action="append", default=[], metavar="TOPIC[:P,P]", help="only there; may be new to it"
    )
    add_yes(reset)
    add_dry_run(reset)

    delete = subcommand(
        sub, "delete", "delete groups without members, and their offsets", delete_groups, aliases=["rm"]
    )
    delete.add_argument("group", nargs="+")
    add_yes(delete)
    add_dry_run(delete)

    redrive = subcommand(sub, "redrive", "bring a share group's dead letters back to their topics", redrive_letters)
    redrive.add_argument("group")
    redrive.add_argument("--from", dest="source", required=True, metavar="TOPIC", help="the dead letter topic")
    redrive.add_argument("--to", metavar="TOPIC", help="to this topic, instead of the one that each came from")
    redrive.add_argument("--max", type=int, metavar="N", help="look at no more than N dead letters")
    add_yes(redrive)
    add_dry_run(redrive)

    forget = subcommand(sub, "offset-delete", "forget a group's offsets of a topic it no longer reads", forget_offsets)
    forget.add_argument("group")
    forget.add_argument("-t", "--topic", action="append", required=True, metavar="TOPIC[:P,P]")
    add_yes(forget)
    add_dry_run(forget)


def list_groups(args: argparse.Namespace) -> None:
    with make_admin(args) as admin:
        found = sorted(admin.groups() + _others(args), key=lambda g: g.group)
    emit(args, found, lambda: table(["GROUP", "STATE", "TYPE"], [(g.group, g.state, g.type) for g in found]))


def describe_group(args: argparse.Namespace) -> None:
    other = _types(args, [args.group]).get(args.group)
    if other is not None:
        _OTHERS[other].describe(args)
        return
    with make_admin(args) as admin:
        found = admin.group(args.group)
        behind = Lags(admin, {args.group: standing(admin, found)})
    lags, lag = behind.by_group[args.group], behind.total(args.group)
    clients = {m.member_id: m.client_id for m in found.members}
    result = {
        "group": found.group,
        "state": found.state,
        "type": found.type,
        "assignor": found.assignor,
        "coordinator": found.coordinator,
        "members": found.members,
        "lag": lag,
        "partitions": lags,
    }

    def text() -> None:
        where = found.coordinator
        fields(
            {
                "group": found.group,
                "state": found.state,
                "type": found.type,
                "assignor": found.assignor or None,
                "coordinator": f"{where.id} ({where.host}:{where.port})" if where else None,
                "members": len(found.members),
                "lag": lag,
            }
        )
        if lags:
            print()
            rows = [(x.topic, x.partition, x.committed, x.end, x.lag, clients.get(x.member_id or "")) for x in lags]
            table(["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "CLIENT"], rows)

    emit(args, result, text)
    behind.bounds.check()


def list_members(args: argparse.Namespace) -> None:
    other = _types(args, [args.group]).get(args.group)
    if other is not None:
        _OTHERS[other].members(args)
        return
    with make_admin(args) as admin:
        found = admin.group(args.group).members
    rows = [(m.client_id, m.host, m.member_id, m.instance_id, [str(t) for t in m.assignment]) for m in found]
    emit(args, found, lambda: table(["CLIENT", "HOST", "MEMBER", "INSTANCE", "PARTITIONS"], rows))


def show_lag(args: argparse.Namespace) -> None:
    with make_admin(args) as admin:
        others = _types(args, args.group) if args.group else {one.group: one.type for one in _others(args)}
        for name in (name for name in args.group if others.get(name) == SHARE):
            raise Failure(
                f"{name!r} is a share group: it commits no offsets", f"`penstock group describe {name}` shows its lag"
            )
        streams = [name for name, kind in others.items() if kind == STREAMS]
        while True:
            lags = _lags(admin, args.group, streams)
            if args.watch is not None and sys.stdout.isatty() and not is_json(args):
                print("\x1b[H\x1b[2J", end="")
            _print_lags(args, lags)
            if args.watch is None:
                lags.bounds.check()
                return
            sys.stdout.flush()
            if lags.bounds.unknown is not None:
                note(str(lags.bounds.unknown))
            time.sleep(args.watch)


def _lags(admin: Admin, groups: list[str], streams: list[str]) -> Lags:
    names = groups or sorted([g.group for g in admin.groups()] + streams)
    return Lags(
        admin,
        {
            name: Standing(admin.group_offsets(name), {}) if name in streams else standing(admin, admin.group(name))
            for name in names
        },
    )


def _print_lags(args: argparse.Namespace, found: Lags) -> None:
    rows: list[dict[str, Any]] = []
    for group, lags in found.by_group.items():
        if args.total:
            rows += [{"group": group, "topic": t, "lag": lag} for t, lag in found.by_topic(group).items()]
            continue
        for x in lags:
            row = {"group": group, "topic": x.topic, "partition": x.partition}
            rows.append(row | {"committed": x.committed, "end": x.end, "lag": x.lag})
    headers = ["GROUP", "TOPIC", "LAG"] if args.total else ["GROUP", "TOPIC", "PARTITION", "COMMITTED", "END", "LAG"]
    emit(args, rows, lambda: table(headers, [list(r.values()) for r in rows]))


def reset_offsets(args: argparse.Namespace) -> None:
    place: Place = parse_place(args.to)
    with make_admin(args) as admin:
        committed = admin.group_offsets(args.group)
        partitions = _chosen(admin, args.topic, list(committed))
        if not partitions:
            raise Failure(
                f"the group {args.group!r} has no offsets to move", "name a topic it shall have some in: --topic T"
            )
        targets = place.resolve(admin, partitions, committed)
        if not args.dry_run:
            confirm(args, f"Move {len(targets)} offset(s) of the group {args.group}?")
            admin.set_group_offsets(args.group, targets)
    rows = [
        {"topic": t.topic, "partition": t.partition, "before": committed.get(t), "after": targets[t]}
        for t in partitions
    ]
    result = {"group": args.group, "dry_run": args.dry_run, "offsets": rows}
    emit(args, result, lambda: table(["TOPIC", "PARTITION", "BEFORE", "AFTER"], [list(r.values()) for r in rows]))


def delete_groups(args: argparse.Namespace) -> None:
    with make_admin(args) as admin:
        others = _types(args, args.group)
        for name in args.group:
            if name not in others:
                admin.group(name)
        if not args.dry_run:
            confirm(args, f"Delete {', '.join(args.group)} and all committed offsets?")
            admin.delete_groups(args.group)
    verb = "would delete" if args.dry_run else "deleted"
    result = {"deleted": args.group, "dry_run": args.dry_run}
    emit(args, result, lambda: print("\n".join(f"{verb} {name}" for name in args.group)))


def forget_offsets(args: argparse.Namespace) -> None:
    from penstock.cli.offset_delete import delete_offsets

    with make_admin(args) as admin:
        committed = admin.group_offsets(args.group)
        partitions = [t for t in _chosen(admin, args.topic, list(committed)) if t in committed]
        if not partitions:
            raise Failure(
                f"the group {args.group!r} has no offsets there", "`penstock group lag GROUP` shows its offsets"
            )
        if not args.dry_run:
            confirm(args, f"Forget {len(partitions)} offset(s) of the group {args.group}?")
            delete_offsets(args, args.group, partitions)
    rows = [{"topic": t.topic, "partition": t.partition, "committed": committed[t]} for t in partitions]
    result = {"group": args.group, "dry_run": args.dry_run, "deleted": rows}
    emit(args, result, lambda: table(["TOPIC", "PARTITION", "WAS"], [list(r.values()) for r in rows]))


def redrive_letters(args: argparse.Namespace) -> None:
    from penstock.cli.redrive import redrive

    redrive(args)


def _others(args: argparse.Namespace) -> list[GroupListing]:
    """Groups that confluent-kafka does not list."""
    from penstock.client import GroupListing
    from penstock.wire.group_admin import list_groups as list_by_type

    with own_client(args) as client:
        found = client.run(list_by_type(client.cluster, *_OTHERS))
    return [GroupListing(one.group_id, one.group_state.lower(), one.group_type.lower()) for one in found]


def _types(args: argparse.Namespace, groups: Iterable[str]) -> dict[str, str]:
    """Of those among them that confluent-kafka does not know. Coordinators tell: no other broker need be there."""
    from penstock.protocol.generated.list_groups_request import ListGroupsRequest
    from penstock.protocol.generated.list_groups_response import ListGroupsResponse
    from penstock.wire.cluster import CoordinatorKind
    from penstock.wire.routes import ask_coordinator

    found = {}
    with own_client(args) as client:
        for group in groups:
            request = ListGroupsRequest(types_filter=list(_OTHERS))
            answer = client.run(
                ask_coordinator(
                    client.cluster,
                    CoordinatorKind.GROUP,
                    group,
                    request,
                    ListGroupsResponse,
                    lambda reply: reply.error_code,
                )
            )
            types = {one.group_id: one.group_type.lower() for one in answer.groups}
            if types.get(group) in _OTHERS:
                found[group] = types[group]
    return found


def _chosen(admin: Admin, texts: list[str], committed: list[TopicPartition]) -> list[TopicPartition]:
    """--topic a --topic b:0,2 as partitions; without any, those that the group has committed."""
    from penstock.client import TopicPartition

    found = []
    for text in texts:
        topic, colon, numbers = text.partition(":")
        known = [p.partition for p in admin.topic(topic).partitions]
        try:
            wanted = [int(n) for n in numbers.split(",")] if colon else known
        except ValueError:
            raise Usage(f"{text!r} is not of the form TOPIC or TOPIC:0,2") from None
        found += [TopicPartition(topic, n) for n in wanted if n in known]
    return sorted(found) if texts else sorted(committed)
