"""`penstock node`: what each broker carries; one that takes no more copies, and one that has left."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from penstock.cli.drain import DRAIN_HELP, drain
from penstock.cli.drain import configure as configure_drain
from penstock.cli.failures import Failure
from penstock.cli.options import add_yes, confirm, subcommand
from penstock.cli.output import emit, note, table
from penstock.cli.own_client import own_client
from penstock.cli.quorum import describe_quorum
from penstock.cli.replica_moves import (
    Survey,
    add_broker,
    alter_cordon,
    count,
    is_cordoned,
    survey,
    timeout_ms,
    unknown_broker,
)

if TYPE_CHECKING:
    from penstock.wire.blocking import Client

CORDON_HELP = """\
A cordoned broker keeps the copies that it has and gets no others: not of new topics, not by moves, not by the balancer.
It stays so over restarts, until `penstock node uncordon`.

  penstock node cordon 3"""

FORGET_HELP = """\
The cluster forgets a broker that is gone for good. One that is alive would only register again, and one that still has
copies is refused without --force: partitions would wait for these copies.

  penstock node drain 3 && kill ... && penstock node forget 3"""


def configure(parser: argparse.ArgumentParser) -> None:
    sub = parser.add_subparsers(metavar="ACTION", title="actions")
    subcommand(sub, "ls", "list brokers, those that are away too, and what they carry", list_nodes)
    add_broker(subcommand(sub, "cordon", "let a broker keep its copies and get no others", cordon, epilog=CORDON_HELP))
    add_broker(subcommand(sub, "uncordon", "let a broker get copies again", uncordon))

    configure_drain(subcommand(sub, "drain", "give all copies of a broker to others", drain, epilog=DRAIN_HELP))
    gone = subcommand(sub, "forget", "let the cluster forget a broker that is gone", forget, epilog=FORGET_HELP)
    add_broker(gone)
    gone.add_argument("--force", action="store_true", help="also where it still has copies")
    add_yes(gone)


def list_nodes(args: argparse.Namespace) -> int:
    """1 where a broker that counts as alive does not answer."""
    with own_client(args) as client:
        found = survey(args, client, cordons=True)
    shown = [
        {
            "id": node.id,
            "rack": node.rack,
            "alive": node.alive,
            "cordoned": node.cordoned if node.alive else None,
            "copies": len(found.held_by(node.id)),
            "leads": sum(copies.leader == node.id for copies in found.partitions.values()),
        }
        for node in found.nodes.values()
    ]
    headers = ["BROKER", "RACK", "ALIVE", "CORDONED", "COPIES", "LEADS"]
    emit(args, shown, lambda: table(headers, [list(row.values()) for row in shown]))
    return int(any(node.alive and node.cordoned is None for node in found.nodes.values()))


def cordon(args: argparse.Namespace) -> None:
    _set_cordon(args, cordoned=True)


def uncordon(args: argparse.Namespace) -> None:
    _set_cordon(args, cordoned=False)


def _set_cordon(args: argparse.Namespace, *, cordoned: bool) -> None:
    with own_client(args) as client:
        if not survey(args, client).node(args.id).alive:
            raise Failure(
                f"broker {args.id} is away, and only it changes its own configuration",
                "start it first, or `penstock node drain` it",
            )
        if is_cordoned(client, args.id) is None:
            raise Failure(f"broker {args.id} is too old for cordons", "Apache Kafka has them from 4.3 on")
        alter_cordon(client, args.id, cordoned=cordoned)
    text = f"{'cordoned' if cordoned else 'uncordoned'} broker {args.id}"
    emit(args, {"broker": args.id, "cordoned": cordoned}, lambda: print(text))


def forget(args: argparse.Namespace) -> None:
    from penstock.base.errors import ErrorCode, KafkaError
    from penstock.wire.partition_admin import unregister_broker

    with own_client(args) as client:
        found = survey(args, client)
        _check_gone(args, found)
        confirm(args, f"Forget broker {args.id}?")
        try:
            client.run(unregister_broker(client.cluster, args.id, timeout_ms=timeout_ms(args)))
        except KafkaError as error:
            if error.code is ErrorCode.BROKER_ID_NOT_REGISTERED:
                raise unknown_broker(args.id, found.nodes) from None
            raise
        emit(args, {"broker": args.id, "forgotten": True}, lambda: print(f"forgot broker {args.id}"))
        sys.stdout.flush()
        _tell_voter(args, client)


def _tell_voter(args: argparse.Namespace, client: Client) -> None:
    """A broker is forgotten; a controller goes on counting among those of which a majority must be there."""
    from penstock.base.errors import KafkaError
    from penstock.base.ids import NO_ID, id_text

    try:
        voters = describe_quorum(client, args.timeout).current_voters
    except (Failure, KafkaError) as failure:
        note(f"whether {args.id} is a voter of the metadata quorum is unknown: {failure}")
        return
    voter = next((one for one in voters if one.replica_id == args.id), None)
    if voter is None:
        return
    note(f"node {args.id} still counts as a voter of the metadata quorum: a majority of {len(voters)} must be there")
    if voter.replica_directory_id == NO_ID:
        # kraft.version 0: voters are what the configuration says.
        note("  take it out of controller.quorum.voters of every node, and restart them one by one")
    else:
        directory = id_text(voter.replica_directory_id)
        note(
            f"  kafka-metadata-quorum --bootstrap-server {args.bootstrap_server} remove-controller "
            f"--controller-id {args.id} --controller-directory-id {directory}"
        )


def _check_gone(args: argparse.Namespace, found: Survey) -> None:
    if args.id not in found.nodes and not found.complete:
        return
    if found.node(args.id).alive:
        raise Failure(
            f"broker {args.id} is alive: it would only register again",
            f"`penstock node drain {args.id}` gives its copies to others; then stop it",
        )
    held = found.held_by(args.id)
    if held and not args.force:
        raise Failure(
            f"broker {args.id} still has copies of {count(len(held), 'partition')}, {held[0]} among them",
            f"`penstock node drain {args.id}` gives them to others; --force leaves the partitions with a copy missing",
        )
