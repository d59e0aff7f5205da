"""What `penstock partition` and `penstock node` share: a look at where copies lie, moves begun, moves waited for."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.cli.failures import Failure, Usage
from penstock.cli.output import note
from penstock.cli.own_client import is_silence

if TYPE_CHECKING:
    from penstock.base.ids import TopicPartition
    from penstock.cli.replica_plan import Copies, Node, Targets
    from penstock.wire.blocking import Client
    from penstock.wire.conversation import Conversation
    from penstock.wire.partition_admin import Moving, Outcomes

POLL_S = 0.5
SETTLE_S = 5.0
"""how long brokers may take to hear of what the controller has decided, and it of what they have"""
SETTLE_POLL_S = 0.1
STALLED_S = 10.0
"""without a move that ended, until we look what they wait for"""
WAIT_S_MAX = 7 * 24 * 3600
"""What has not arrived after a week is looked at by a person."""
WHERE_TOPICS = "`penstock topic ls` lists the topics"
STILL_MOVING = "`penstock partition moves` shows what is on its way, `penstock partition cancel` ends it"


@dataclass(frozen=True, slots=True)
class Survey:
    """Who is in the cluster, and who has which copy."""

    nodes: dict[int, Node]
    partitions: dict[TopicPartition, Copies]
    moving: dict[TopicPartition, Moving]
    complete: bool
    """False where the cluster does not tell of brokers that are away and have no copies."""

    def node(self, broker: int) -> Node:
        if broker not in self.nodes:
            raise unknown_broker(broker, self.nodes)
        return self.nodes[broker]

    def of_topic(self, topic: str, only: Collection[int] = ()) -> list[TopicPartition]:
        """The partitions of a topic, or those named."""
        known = [place for place in self.partitions if place.topic == topic]
        if not known:
            raise Failure(f"there is no topic {topic!r}", WHERE_TOPICS)
        numbers = [place.partition for place in known]
        for number in only:
            if number not in numbers:
                raise Failure(f"{topic} has no partition {number}", f"it has {len(known)}: 0 to {len(known) - 1}")
        return [place for place in known if not only or place.partition in only]

    def held_by(self, broker: int) -> list[TopicPartition]:
        """Where the broker has a copy, also one that is about to go or to come."""
        return [
            place
            for place, copies in self.partitions.items()
            if broker in copies.replicas or (place in self.moving and broker in self.moving[place].replicas)
        ]


def unknown_broker(broker: int, known: Iterable[int]) -> Failure:
    hint = f"brokers of the cluster: {', '.join(map(str, known))}; `penstock node ls` tells of them"
    return Failure(f"there is no broker {broker}", hint)


def away(broker: int) -> Failure:
    return Failure(f"broker {broker} is away: nothing can be copied to it", "`penstock node ls` lists who is there")


def add_broker(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", type=int, help="of the broker; `penstock node ls` lists them")


def timeout_ms(args: argparse.Namespace) -> int:
    return int(args.timeout * 1000)


def survey(args: argparse.Namespace, client: Client, *, cordons: bool = False) -> Survey:
    """`cordons`: ask each broker whether it is cordoned, too; without, none of them counts as that."""
    from penstock.cli.replica_plan import Copies, Node
    from penstock.wire.partition_admin import describe_every_topic, describe_registered, list_reassignments

    registered = client.run(describe_registered(client.cluster))
    topics = client.run(describe_every_topic(client.cluster, timeout_ms=timeout_ms(args)))
    moving = client.run(list_reassignments(client.cluster, timeout_ms=timeout_ms(args)))
    partitions = {}
    for topic in topics:
        for one in topic.partitions:
            place = _place(topic.name or "", one.partition_index)
            target = moving[place].target if place in moving else one.replica_nodes
            partitions[place] = Copies(target, one.isr_nodes, one.leader_id if one.leader_id >= 0 else None)
    nodes = {}
    for broker in sorted(registered.answer.brokers, key=lambda one: one.broker_id):
        cordoned = _cordon_of(client, broker.broker_id) if cordons and not broker.is_fenced else False
        nodes[broker.broker_id] = Node(broker.broker_id, broker.rack, not broker.is_fenced, cordoned)
    for place, copies in partitions.items():
        for holder in moving[place].replicas if place in moving else copies.replicas:
            nodes.setdefault(holder, Node(holder, alive=False))
    return Survey(dict(sorted(nodes.items())), dict(sorted(partitions.items())), moving, registered.complete)


def _cordon_of(client: Client, broker: int) -> bool | None:
    """None where the broker does not answer, though nobody has missed it yet."""
    from penstock.base.errors import KafkaError

    try:
        return bool(is_cordoned(client, broker))
    except KafkaError as error:
        if not is_silence(error):
            raise
        note(f"whether broker {broker} is cordoned is unknown: {error}")
        return None


def is_cordoned(client: Client, broker: int) -> bool | None:
    """Whether the broker takes no new copies; None where it is too old to know of such a thing."""
    from penstock.base.configs.broker_logs import EVERY_DIRECTORY
    from penstock.base.configs.values import split_list
    from penstock.wire.admin import BROKER, describe_configs

    found = client.run(
        describe_configs(client.cluster, BROKER, str(broker), ["cordoned.log.dirs", "log.dirs", "log.dir"])
    )
    values = {one.name: split_list(one.value or "") for one in found}
    cordoned = values.get("cordoned.log.dirs")
    if cordoned is None:
        return None
    directories = values.get("log.dirs") or values.get("log.dir") or [EVERY_DIRECTORY]
    return EVERY_DIRECTORY in cordoned or all(one in cordoned for one in directories)


def alter_cordon(client: Client, broker: int, *, cordoned: bool) -> None:
    """And wait until it holds: the broker tells the controller with its next heartbeat."""
    from penstock.base.configs.broker_logs import EVERY_DIRECTORY
    from penstock.wire.admin import BROKER, alter_configs, describe_log_dirs

    value = EVERY_DIRECTORY if cordoned else None
    client.run(alter_configs(client.cluster, BROKER, str(broker), {"cordoned.log.dirs": value}))
    end = time.monotonic() + SETTLE_S
    while any(one.is_cordoned is not cordoned for one in client.run(describe_log_dirs(client.cluster, broker))):
        if time.monotonic() > end:
            note(f"broker {broker} has yet to tell the controller of it: for a moment all may be as before")
            return
        time.sleep(SETTLE_POLL_S)


def broker_list(text: str) -> list[int]:
    """The 1,2,4 of `--to`."""
    found = [int(item) for item in text.split(",") if item.strip().isdigit()]
    if len(found) != len(text.split(",")):
        raise Usage(f"--to {text}: not a list of broker ids", "give them as 1,2,4")
    if len(set(found)) < len(found):
        raise Usage(f"--to {text}: a broker is named twice", "a partition has one copy on a broker")
    return found


def begin(args: argparse.Namespace, client: Client, targets: Mapping[TopicPartition, Sequence[int] | None]) -> Outcomes:
    """Ask for these moves; what is refused is told, and returned."""
    from penstock.base.errors import ErrorCode

    outcomes = alter(args, client, targets)
    refused = {place: one for place, one in outcomes.items() if one.code is not ErrorCode.NONE}
    tell_refused(refused)
    return refused


def alter(args: argparse.Namespace, client: Client, targets: Mapping[TopicPartition, Sequence[int] | None]) -> Outcomes:
    """What came of it. None for a target: the partition stays where it was before it was moved."""
    from penstock.wire.partition_admin import alter_reassignments

    def talk(some: list[TopicPartition]) -> Conversation[Outcomes]:
        wanted = {place: targets[place] for place in some}
        return alter_reassignments(client.cluster, wanted, timeout_ms=timeout_ms(args))

    return by_request(client, talk, targets)


def by_request(
    client: Client, talk: Callable[[list[TopicPartition]], Conversation[Outcomes]], places: Iterable[TopicPartition]
) -> Outcomes:
    """As many partitions at a time as a request takes: --timeout is for one answer, however many are asked for."""
    from penstock.wire.partition_admin import PARTITIONS_A_REQUEST_MAX

    wanted = list(places)
    outcomes: Outcomes = {}
    for first in range(0, len(wanted), PARTITIONS_A_REQUEST_MAX):
        outcomes |= client.run(talk(wanted[first : first + PARTITIONS_A_REQUEST_MAX]))
    return outcomes


def tell_refused(refused: Outcomes) -> None:
    for place, outcome in refused.items():
        note(f"{place}: {outcome.text}")


def refusals(refused: Outcomes) -> list[dict[str, str]]:
    return [{"partition": str(place), "error": one.text} for place, one in refused.items()]


def tell_held_up(targets: Targets, nodes: Mapping[int, Node]) -> None:
    """A move ends when all of its copies are in sync: one on a broker that is away holds it up."""
    away = sorted({one for target in targets.values() for one in target if not nodes[one].alive})
    held_up = sum(any(one in away for one in target) for target in targets.values())
    if held_up:
        names = ", ".join(map(str, away))
        note(
            f"{count(held_up, 'partition')} also with a copy on broker {names}, which is away: such a move ends once "
            "it is back"
        )


def wait(args: argparse.Namespace, client: Client, places: Collection[TopicPartition]) -> None:
    """Until none of them is on its way. An interrupt leaves the moves as they are."""
    from penstock.wire.partition_admin import list_reassignments

    told = -1
    stalled = False
    since = time.monotonic()
    try:
        for _ in range(int(WAIT_S_MAX / POLL_S)):
            moving = client.run(list_reassignments(client.cluster, timeout_ms=timeout_ms(args)))
            arrived = sum(place not in moving for place in places)
            if arrived != told:
                note(f"{arrived} of {count(len(places), 'partition')} moved")
                told, since = arrived, time.monotonic()
            if arrived == len(places):
                return
            if not stalled and time.monotonic() - since >= STALLED_S:
                stalled = _tell_stalled(args, client, [place for place in places if place in moving])
                since = time.monotonic()
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        note(f"the moves go on without this command: {STILL_MOVING}")
        raise
    raise Failure("not everything has arrived in a week; the moves go on", STILL_MOVING)


def _tell_stalled(args: argparse.Namespace, client: Client, places: Iterable[TopicPartition]) -> bool:
    """Which of them wait for a broker that is away; False where none does: then they are being copied."""
    from penstock.client.errors import listed

    found = survey(args, client)
    waiting: dict[int, list[TopicPartition]] = {}
    for place in places:
        for broker in found.moving[place].target if place in found.moving else ():
            # Of a topic that was just deleted, the brokers may be unknown.
            node = found.nodes.get(broker)
            if node is not None and not node.alive:
                waiting.setdefault(broker, []).append(place)
    for broker, held_up in sorted(waiting.items()):
        note(f"{listed(held_up)}: waiting for broker {broker}, which is away")
    if waiting:
        note(
            "start it, or go on without: Ctrl-C leaves the moves running, as --no-wait does from the beginning; "
            "`penstock partition cancel` ends them"
        )
    return bool(waiting)


def rows(
    targets: Mapping[TopicPartition, Sequence[int]], before: Mapping[TopicPartition, Copies]
) -> list[dict[str, Any]]:
    return [
        {"topic": place.topic, "partition": place.partition, "from": list(before[place].replicas), "to": list(target)}
        for place, target in targets.items()
    ]


def count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _place(topic: str, partition: int) -> TopicPartition:
    from penstock.base.ids import TopicPartition

    return TopicPartition(topic, partition)
