"""Why brokers do not acknowledge what was sent, as far as the cluster tells."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.cli.failures import Failure
from penstock.cli.options import client_config

if TYPE_CHECKING:
    from penstock.base.ids import TopicPartition
    from penstock.client import Admin, PartitionInfo

ASK_S = 2.0
"""for each of two questions: the command has used up its time already"""


def explain_silence(args: argparse.Namespace, number: int, partitions: list[TopicPartition]) -> Failure:
    """`number` records for `partitions` were not acknowledged within --timeout."""
    from penstock.client import Admin, BrokerUnreachable, ClientError

    what = "1 record was" if number == 1 else f"{number} records were"
    try:
        with Admin(args.bootstrap_server, timeout_s=ASK_S, config=client_config(args)) as admin:
            told = _told(_causes(args, admin, partitions)) or "brokers have not said why"
    except BrokerUnreachable as error:
        told = f"and now brokers do not answer: {error}"
    except ClientError as error:
        told = f"and brokers do not tell why: {error}"
    topic = partitions[0].topic if partitions else args.topic
    return Failure(
        f"{what} not acknowledged within {args.timeout:g} s: {told}",
        f"whether it is written is unknown; `penstock topic describe {topic}` shows leaders and copies in sync, "
        "`penstock cluster` who is missing",
    )


def _told(causes: dict[str, list[TopicPartition]]) -> str:
    """A partition of number -1 is none."""
    from penstock.client.errors import listed

    return "; ".join(
        f"{listed([one if one.partition >= 0 else one.topic for one in places])}: {cause}"
        for cause, places in causes.items()
    )


def _causes(
    args: argparse.Namespace, admin: Admin, partitions: Iterable[TopicPartition]
) -> dict[str, list[TopicPartition]]:
    wanted = sorted(partitions)
    topics = {topic.name: topic for topic in admin.topics(internal=True)}
    least = {name: _min_insync(args, admin, name) for name in sorted({t.topic for t in wanted}) if name in topics}
    found = {(name, one.partition): one for name in least for one in topics[name].partitions}
    causes: dict[str, list[TopicPartition]] = {}
    for t in wanted:
        causes.setdefault(_cause(t, found.get((t.topic, t.partition)), least.get(t.topic, 1)), []).append(t)
    return causes


def _min_insync(args: argparse.Namespace, admin: Admin, topic: str) -> int:
    """How many copies must be in sync; without acks=all, the leader is enough. 1 where we may not read it."""
    from penstock.client import BrokerUnreachable, ClientError

    if args.acks not in ("all", "-1"):
        return 1
    try:
        found = admin.config("topic", topic)
    except BrokerUnreachable:
        raise
    except ClientError:
        return 1
    value = next((one.value for one in found if one.name == "min.insync.replicas"), None)
    return int(value or 1)


def _cause(partition: TopicPartition, found: PartitionInfo | None, least: int) -> str:
    if found is None:
        return "no partition was chosen yet" if partition.partition < 0 else "it is gone"
    if found.leader is None:
        return "it has no leader"
    least = min(least, len(found.replicas))
    if len(found.isr) < least:
        return f"NOT_ENOUGH_REPLICAS, {len(found.isr)} in sync where min.insync.replicas is {least}"
    return f"its leader, broker {found.leader}, has not acknowledged (in sync as last told: {_ids(sorted(found.isr))})"


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))
