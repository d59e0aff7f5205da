"""`penstock node drain`: every copy on a broker is given to another one."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from penstock.cli.failures import Failure, Usage
from penstock.cli.options import add_dry_run, add_yes, confirm
from penstock.cli.output import emit, note, table
from penstock.cli.own_client import own_client
from penstock.cli.replica_moves import (
    SETTLE_POLL_S,
    SETTLE_S,
    STILL_MOVING,
    Survey,
    add_broker,
    alter_cordon,
    away,
    begin,
    broker_list,
    count,
    is_cordoned,
    refusals,
    rows,
    survey,
    tell_held_up,
    wait,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from penstock.base.ids import TopicPartition
    from penstock.cli.replica_plan import Plan
    from penstock.wire.blocking import Client
    from penstock.wire.partition_admin import Outcomes

ROUNDS_MAX = 3
"""of a drain: a topic may be made between the look at the copies and the cordon"""

DRAIN_HELP = """\
Every copy on the broker is given to another one, which is alive, is not cordoned and has none of the partition: in a
rack that the partition is not in yet, where there is one, and with the fewest copies. The broker is cordoned first.
It waits until everything has arrived; Ctrl-C leaves the moves running. A broker that is away can be drained too.

  penstock node drain 3 --dry-run
  penstock node drain 3 --to 4,5
  penstock node drain 3 --fewer-copies --yes       # drop copies that no other broker can take"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_broker(parser)
    parser.add_argument("--to", metavar="ID,...", help="only to these brokers (all that are there)")
    parser.add_argument("--fewer-copies", action="store_true", help="drop a copy where no broker is left for it")
    parser.add_argument("--no-wait", action="store_true", help="do not wait until everything has arrived")
    add_yes(parser)
    add_dry_run(parser)


def drain(args: argparse.Namespace) -> int:
    with own_client(args) as client:
        found = survey(args, client, cordons=True)
        alive = found.node(args.id).alive
        plan = _plan(args, found)
        size_bytes = _size_bytes(client, args.id, found, plan)
        if not args.dry_run:
            confirm(args, _question(args.id, plan, size_bytes, alive))
        cordoned = alive and not args.dry_run and _cordoned_first(client, args.id)
        refused: Outcomes = {}
        left: list[TopicPartition] = []
        if not args.dry_run:
            refused, left = _carry_out(args, client, found, plan)
    moves = rows(plan.targets, found.partitions)
    result = {
        "broker": args.id,
        "partitions": moves,
        "bytes": size_bytes,
        "cordoned": cordoned,
        "refused": refusals(refused),
        "left": [str(place) for place in left],
        "stranded": [str(place) for place in plan.stranded],
        "dry_run": args.dry_run,
        "waited": not (args.dry_run or args.no_wait),
    }
    emit(args, result, lambda: _print_drain(args, moves, len(plan.targets) - len(refused)))
    _tell_stranded(args.id, plan)
    if refused or left or plan.stranded:
        return 1
    if not args.dry_run:
        _tell_next(args, alive)
    return 0


def _plan(args: argparse.Namespace, found: Survey) -> Plan:
    """Fails where a copy has nowhere to go."""
    from penstock.cli.replica_plan import plan_drain

    among = None if args.to is None else _among(args, found)
    plan = plan_drain(args.id, found.nodes, found.partitions, among=among, fewer_copies=args.fewer_copies)
    if plan.homeless:
        raise Failure(
            f"no other broker can take the copies of {count(len(plan.homeless), 'partition')}, "
            f"{plan.homeless[0]} among them; nothing was changed",
            "add a broker, or give --fewer-copies, which drops these copies",
        )
    if plan.last:
        raise Failure(
            f"broker {args.id} has the only copy in sync of {count(len(plan.last), 'partition')}, "
            f"{plan.last[0]} among them, and no other broker can take it; nothing was changed",
            "add a broker: the last copy is never dropped",
        )
    return plan


def _among(args: argparse.Namespace, found: Survey) -> list[int]:
    wanted = broker_list(args.to)
    if args.id in wanted:
        raise Usage(f"--to {args.to}: broker {args.id} is the one that is drained")
    for broker in wanted:
        node = found.node(broker)
        if not node.alive:
            raise away(broker)
        if node.cordoned:
            raise Failure(f"broker {broker} is cordoned: it takes no copies", f"`penstock node uncordon {broker}`")
    return wanted


def _question(broker: int, plan: Plan, size_bytes: int, alive: bool) -> str:
    what = f"the copies of {count(len(plan.targets), 'partition')} ({_size_text(size_bytes)}) away from broker {broker}"
    return f"Cordon broker {broker} and move {what}?" if alive else f"Move {what}, which is away?"


def _cordoned_first(client: Client, broker: int) -> bool:
    """Else the balancer would give it copies again."""
    from penstock.base.errors import KafkaError

    try:
        if is_cordoned(client, broker) is None:
            note(f"broker {broker} is too old for cordons: new topics and moves may give it copies again")
            return False
        alter_cordon(client, broker, cordoned=True)
    except KafkaError as error:
        note(f"broker {broker} is not cordoned, so it may be given copies again: {error}")
        return False
    return True


def _carry_out(
    args: argparse.Namespace, client: Client, found: Survey, plan: Plan
) -> tuple[Outcomes, list[TopicPartition]]:
    """What was refused, and what has a copy here still though everything was waited for."""
    for _ in range(ROUNDS_MAX):
        refused = begin(args, client, plan.targets)
        tell_held_up(plan.targets, found.nodes)
        if args.no_wait:
            return refused, []
        leaving = [place for place in found.held_by(args.id) if place not in plan.stranded and place not in refused]
        if leaving:
            wait(args, client, leaving)
        stuck = {*plan.stranded, *refused}
        found = _settled(args, client, stuck)
        left = [place for place in found.held_by(args.id) if place not in stuck]
        if not left or refused:
            break
        plan = _plan(args, found)
    if left:
        note(f"{count(len(left), 'partition')} still on broker {args.id}, {left[0]} among them: drain it once more")
    return refused, left


def _settled(args: argparse.Namespace, client: Client, stuck: Collection[TopicPartition]) -> Survey:
    """How copies lie once the brokers have heard of what was moved."""
    end = time.monotonic() + SETTLE_S
    while True:
        found = survey(args, client)
        if all(place in stuck for place in found.held_by(args.id)) or time.monotonic() > end:
            return survey(args, client, cordons=True)
        time.sleep(SETTLE_POLL_S)


def _size_bytes(client: Client, broker: int, found: Survey, plan: Plan) -> int:
    """Of the copies to be moved, as the broker tells; where it is away, as others that have them tell."""
    from penstock.base.ids import TopicPartition
    from penstock.wire.admin import describe_log_dirs

    if not plan.targets:
        return 0
    asked = [broker] if found.nodes[broker].alive else [one.id for one in found.nodes.values() if one.alive]
    sizes: dict[TopicPartition, int] = {}
    for one in asked:
        for directory in client.run(describe_log_dirs(client.cluster, one)):
            for topic in directory.topics:
                for held in topic.partitions:
                    place = TopicPartition(topic.name, held.partition_index)
                    sizes[place] = max(sizes.get(place, 0), held.partition_size)
    return sum(sizes.get(place, 0) for place in plan.targets)


def _size_text(size_bytes: int) -> str:
    size, units = float(size_bytes), ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{size_bytes} bytes" if units[0] == "bytes" else f"{size:.1f} {units[0]}"


def _print_drain(args: argparse.Namespace, moves: list[dict[str, Any]], number: int) -> None:
    if args.dry_run and moves:
        table(["TOPIC", "PARTITION", "FROM", "TO"], [list(row.values()) for row in moves])
    if not moves:
        print(f"broker {args.id} has no copies to move")
    else:
        verb = "would move" if args.dry_run else "began to move" if args.no_wait else "moved"
        print(f"{verb} {count(number, 'partition')} away from broker {args.id}")


def _tell_stranded(broker: int, plan: Plan) -> None:
    if plan.stranded:
        note(
            f"{count(len(plan.stranded), 'partition')} not moved, {plan.stranded[0]} among them: no copy in sync is "
            f"alive. Bring broker {broker} back, or `penstock partition elect TOPIC --unclean`, which may lose records"
        )


def _tell_next(args: argparse.Namespace, alive: bool) -> None:
    if args.no_wait:
        note(STILL_MOVING)
    else:
        stop = f"stop broker {args.id}, then " if alive else ""
        note(f"next: {stop}`penstock node forget {args.id}`")
