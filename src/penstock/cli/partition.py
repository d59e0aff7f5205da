"""`penstock partition`: partitions on their way to other brokers, and who leads them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.failures import Failure, Usage
from penstock.cli.options import add_dry_run, add_yes, confirm, subcommand
from penstock.cli.output import emit, note, table
from penstock.cli.own_client import own_client
from penstock.cli.replica_moves import (
    Survey,
    alter,
    away,
    begin,
    broker_list,
    by_request,
    count,
    refusals,
    rows,
    survey,
    tell_held_up,
    tell_refused,
    timeout_ms,
    wait,
)

if TYPE_CHECKING:
    from penstock.base.ids import TopicPartition
    from penstock.cli.replica_plan import Targets
    from penstock.wire.conversation import Conversation
    from penstock.wire.partition_admin import Outcomes

MOVE_HELP = """\
Each partition gets exactly these copies, in this order; the first is the one that leads by preference. New copies are
made before old ones go. It waits until all have arrived; Ctrl-C leaves them on their way.

  penstock partition move orders --to 1,2,4 --dry-run
  penstock partition move orders --partition 0 --partition 3 --to 2,3,4
  penstock partition move orders --copies 3        # the brokers are chosen, evenly over racks and brokers"""

CANCEL_HELP = """\
Partitions go back to the copies that they had; what has been copied so far is dropped.

  penstock partition cancel orders --partition 0
  penstock partition cancel --yes                  # everything that is on its way"""

ELECT_HELP = """\
Leaders go back to the first of a partition's copies, as after a broker was away. With --unclean a copy that is not in
sync leads where nobody else can: records that were acknowledged may be lost.

  penstock partition elect
  penstock partition elect orders payments
  penstock partition elect orders --partition 0 --unclean"""


def configure(parser: argparse.ArgumentParser) -> None:
    sub = parser.add_subparsers(metavar="ACTION", title="actions")
    subcommand(sub, "moves", "list partitions on their way to other brokers", list_moves, aliases=["ls"])

    move = subcommand(sub, "move", "give partitions other copies", move_partitions, epilog=MOVE_HELP)
    move.add_argument("topic")
    _add_partition(move)
    where = move.add_mutually_exclusive_group(required=True)
    where.add_argument("--to", metavar="ID,...", help="on exactly these brokers, in this order")
    where.add_argument("--copies", type=int, metavar="N", help="so many copies; those that are there are kept")
    move.add_argument("--no-wait", action="store_true", help="do not wait until they have arrived")
    add_dry_run(move)

    cancel = subcommand(sub, "cancel", "end moves: partitions stay where they were", cancel_moves, epilog=CANCEL_HELP)
    cancel.add_argument("topic", nargs="?", help="only this topic's (all)")
    _add_partition(cancel)
    add_yes(cancel)

    elect = subcommand(sub, "elect", "give leaders back to the preferred copies", hold_elections, epilog=ELECT_HELP)
    elect.add_argument("topic", nargs="*", help="only these topics (all)")
    _add_partition(elect)
    elect.add_argument("--unclean", action="store_true", help="let a copy lead that is not in sync; may lose records")
    add_yes(elect)


def _add_partition(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-p", "--partition", type=int, action="append", default=[], metavar="N", help="only this one; may be repeated"
    )


def list_moves(args: argparse.Namespace) -> None:
    from penstock.wire.partition_admin import list_reassignments

    with own_client(args) as client:
        found = client.run(list_reassignments(client.cluster, timeout_ms=timeout_ms(args)))
    shown = [
        {
            "topic": place.topic,
            "partition": place.partition,
            "replicas": one.replicas,
            "adding": one.adding,
            "removing": one.removing,
        }
        for place, one in found.items()
    ]
    if not shown:
        note("no partition is on its way")
    headers = ["TOPIC", "PARTITION", "REPLICAS", "ADDING", "REMOVING"]
    if shown or args.format == "json":
        emit(args, shown, lambda: table(headers, [list(row.values()) for row in shown]))


def move_partitions(args: argparse.Namespace) -> int:
    with own_client(args) as client:
        found = survey(args, client, cordons=args.copies is not None)
        places = found.of_topic(args.topic, args.partition)
        targets = _to(args, found, places) if args.to is not None else _with_copies(args, found, places)
        moved = rows(targets, found.partitions)
        refused = {}
        if targets and not args.dry_run:
            refused = begin(args, client, targets)
            tell_held_up(targets, found.nodes)
            if not args.no_wait:
                wait(args, client, [place for place in targets if place not in refused])
    if not targets:
        note("nothing to move: the copies are as they should be")
    result = {
        "partitions": moved,
        "refused": refusals(refused),
        "dry_run": args.dry_run,
        "waited": not (args.dry_run or args.no_wait),
    }
    headers = ["TOPIC", "PARTITION", "FROM", "TO"]
    emit(args, result, lambda: table(headers, [list(row.values()) for row in moved]) if moved else None)
    return 1 if refused else 0


def _to(args: argparse.Namespace, found: Survey, places: list[TopicPartition]) -> Targets:
    wanted = broker_list(args.to)
    for broker in wanted:
        if not found.node(broker).alive and any(broker not in found.partitions[place].replicas for place in places):
            raise away(broker)
    return {place: wanted for place in places if wanted != found.partitions[place].replicas}


def _with_copies(args: argparse.Namespace, found: Survey, places: list[TopicPartition]) -> Targets:
    from penstock.cli.replica_plan import plan_copies

    if args.copies < 1:
        raise Usage(f"--copies {args.copies}: a partition has at least one")
    plan = plan_copies(args.copies, places, found.nodes, found.partitions)
    if plan.homeless:
        raise Failure(
            f"there are too few brokers for {args.copies} copies of {count(len(plan.homeless), 'partition')}",
            "`penstock node ls` lists those that are there; add or uncordon one; nothing was moved",
        )
    if plan.stranded:
        raise Failure(
            f"nobody leads {', '.join(map(str, plan.stranded))}, so nothing can be copied; nothing was moved",
            "bring a broker back that has it in sync: `penstock topic describe` lists them",
        )
    return plan.targets


def cancel_moves(args: argparse.Namespace) -> int:
    from penstock.base.errors import ErrorCode
    from penstock.wire.partition_admin import list_reassignments

    if args.partition and args.topic is None:
        raise Usage("--partition goes with a topic", "penstock partition cancel orders --partition 0")
    with own_client(args) as client:
        found = client.run(list_reassignments(client.cluster, timeout_ms=timeout_ms(args)))
        places = list(found)
        if args.topic is not None:
            asked = survey(args, client).of_topic(args.topic, args.partition)
            places = [place for place in places if place in asked]
        elif places:
            confirm(args, f"Cancel the moves of {count(len(places), 'partition')}?")
        outcomes = alter(args, client, dict.fromkeys(places))
    if not places:
        note("nothing to cancel: none of it is on its way")
    cancelled = [str(place) for place, one in outcomes.items() if one.code is ErrorCode.NONE]
    arrived = [str(place) for place, one in outcomes.items() if one.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS]
    refused = {place: one for place, one in outcomes.items() if str(place) not in (*cancelled, *arrived)}
    if arrived:
        note(f"{', '.join(arrived)}: arrived before it could be cancelled")
    tell_refused(refused)
    result = {
        "cancelled": cancelled,
        "arrived": arrived,
        "refused": refusals(refused),
    }
    emit(args, result, lambda: print("\n".join(f"cancelled {place}" for place in cancelled)) if cancelled else None)
    return 1 if refused else 0


def hold_elections(args: argparse.Namespace) -> int:
    from penstock.base.errors import ErrorCode
    from penstock.wire.partition_admin import elect_leaders

    if args.partition and len(args.topic) != 1:
        raise Usage("--partition goes with one topic", "penstock partition elect orders --partition 0")
    with own_client(args) as client:
        found = survey(args, client)
        places = [place for topic in args.topic for place in found.of_topic(topic, args.partition)]
        places = places or list(found.partitions)
        if args.unclean:
            if all(found.partitions[place].leader is not None for place in places):
                return _nothing_to_elect(args, places)
            confirm(args, _unclean_question(found, places))

        def talk(some: list[TopicPartition]) -> Conversation[Outcomes]:
            return elect_leaders(client.cluster, some, unclean=args.unclean, timeout_ms=timeout_ms(args))

        outcomes = by_request(client, talk, places)
    elected = [str(place) for place, one in outcomes.items() if one.code is ErrorCode.NONE]
    unneeded = [str(place) for place, one in outcomes.items() if one.code is ErrorCode.ELECTION_NOT_NEEDED]
    refused = {place: one for place, one in outcomes.items() if str(place) not in {*elected, *unneeded}}
    tell_refused(refused)
    result = {
        "elected": elected,
        "not_needed": unneeded,
        "refused": refusals(refused),
    }
    text = f"{count(len(elected), 'leader')} elected, {len(unneeded)} as they should be, {len(refused)} not possible"
    emit(args, result, lambda: print(text))
    return 1 if refused else 0


def _nothing_to_elect(args: argparse.Namespace, places: list[TopicPartition]) -> int:
    note(f"nothing to elect: each of {count(len(places), 'partition')} has a leader")
    result = {"elected": [], "not_needed": [str(place) for place in places], "refused": []}
    if args.format == "json":
        emit(args, result, lambda: None)
    return 0


def _unclean_question(found: Survey, places: list[TopicPartition]) -> str:
    leaderless = [place for place in places if found.partitions[place].leader is None]
    return (
        f"{count(len(leaderless), 'partition')} of {len(places)} without a leader. Let copies lead that are not in sync"
        "? Records that were acknowledged may be lost for good."
    )
