"""The commands of the transcripts of consumer groups: topics, and heartbeats of the consumer protocol."""

from __future__ import annotations

from typing import Any

from group_driver import GroupDriver

from penstock.base.errors import ErrorCode
from penstock.core.coordinator.result import CoordinatorRecord
from penstock.core.groups.consumer import records
from penstock.core.groups.consumer.group import ConsumerGroup
from penstock.core.groups.consumer.heartbeat import HeartbeatContext
from penstock.core.groups.consumer.member import plain
from penstock.core.groups.modern.assignment import Assignment, read
from penstock.core.groups.state import RequestContext
from penstock.core.metadata.image import Image, Partition, Topic
from penstock.protocol.generated.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)

Arguments = dict[str, str]
_PARTITION = Partition((1,), (1,), 1, 0, 0)


def topics(driver: GroupDriver, arguments: Arguments) -> None:
    """x=2 y=1: the topics there are, with their partitions"""
    made = {
        name: Topic(name, _id(name), dict.fromkeys(range(int(count)), _PARTITION)) for name, count in arguments.items()
    }
    image = Image(topics=made, topics_by_id={topic.id: topic for topic in made.values()})
    driver.metadata.follow(image, [*driver.metadata.image.topics_by_id, *image.topics_by_id])


def report(driver: GroupDriver, arguments: Arguments) -> None:
    """member=ID epoch=N [names=x,y] [regex=R] [instance=ID] [owned=x-0,y-1] [assignor=NAME] [rebalance=MS]"""
    epoch = int(arguments["epoch"])
    names = arguments.get("names")
    request = ConsumerGroupHeartbeatRequest(
        group_id=arguments.get("group", "g"),
        member_id=arguments.get("member", ""),
        member_epoch=epoch,
        instance_id=arguments.get("instance"),
        rebalance_timeout_ms=int(arguments.get("rebalance", -1 if epoch else 60_000)),
        subscribed_topic_names=None if names is None else [name for name in names.split(",") if name],
        subscribed_topic_regex=arguments.get("regex"),
        server_assignor=arguments.get("assignor"),
        topic_partitions=_owned(arguments["owned"]) if "owned" in arguments else ([] if not epoch else None),
    )
    context = HeartbeatContext(RequestContext(1, "client", "/127.0.0.1"), lambda topic: True)
    driver.request(f"report {request.member_id}", driver.shard.consumer_heartbeat, request, context, _show_report)


def _show_report(answer: Any) -> str:
    if answer.error_code:
        return ErrorCode(answer.error_code).name
    text = f"epoch={answer.member_epoch} again in {answer.heartbeat_interval_ms} ms"
    if answer.assignment is None:
        return text
    return f"{text}, assigned [{_show(read(answer.assignment.topic_partitions))}]"


def show_record(kind: int, record: CoordinatorRecord) -> str:
    """By replaying it into nothing."""
    groups: dict[str, ConsumerGroup] = {}
    if record.value is None:
        names = {
            records.GROUP: "group",
            records.MEMBER: "member",
            records.TARGET_EPOCH: "target epoch",
            records.TARGET: "target",
            records.CURRENT: "current",
            records.REGEX: "regex",
        }
        parts = [part.decode() for part in _strings(record.key[2:])]
        return f"consumer {names[kind]} {' '.join(parts)} tombstone"
    records.replay(groups, kind, record)
    (group,) = groups.values()
    of = f"consumer group {group.group_id}"
    if kind == records.GROUP:
        return f"{of} epoch={group.epoch}"
    if kind == records.TARGET_EPOCH:
        return f"{of} target epoch={group.target_epoch}"
    if kind == records.TARGET:
        ((member_id, target),) = group.target.items()
        return f"{of} target of {member_id}: [{_show(target)}]"
    if kind == records.REGEX:
        ((regex, resolved),) = group.regexes.items()
        return f"{of} regex {regex} = {','.join(resolved.topics)}"
    (member,) = group.members.values()
    if kind == records.MEMBER:
        what = f"names={','.join(member.topics)} regex={member.regex} instance={member.instance_id}"
        return f"{of} member {member.member_id} {what}{' classic' if member.uses_classic_protocol else ''}"
    has = f"epoch={member.epoch} {member.state.name} [{_show(plain(member.assigned))}]"
    giving = f" revoking [{_show(plain(member.revoking))}]" if member.revoking else ""
    return f"{of} current {member.member_id} {has}{giving}"


def _id(topic: str) -> bytes:
    return topic.encode().ljust(16)


def _owned(text: str) -> list[TopicPartitions]:
    partitions: dict[str, list[int]] = {}
    for each in text.split(","):
        topic, _, index = each.rpartition("-")
        if each:
            partitions.setdefault(topic, []).append(int(index))
    return [TopicPartitions(topic_id=_id(topic), partitions=indexes) for topic, indexes in partitions.items()]


def _show(assignment: Assignment) -> str:
    return " ".join(f"{topic_id.decode().strip()}-{at}" for topic_id, ats in assignment.items() for at in ats)


def _strings(body: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(body):
        size = int.from_bytes(body[at : at + 2], "big")
        found.append(body[at + 2 : at + 2 + size])
        at += 2 + size
    return found
