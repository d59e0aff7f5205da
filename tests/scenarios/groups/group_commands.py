"""The commands of the group transcripts: a word, and `name=value` arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import consumer_commands
import streams_commands
from group_driver import GroupDriver, full, subscription

from penstock.base.errors import ErrorCode
from penstock.core.groups.state import RequestContext
from penstock.protocol.generated.heartbeat_request import HeartbeatRequest
from penstock.protocol.generated.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.generated.leave_group_request import LeaveGroupRequest, MemberIdentity
from penstock.protocol.generated.list_groups_request import ListGroupsRequest
from penstock.protocol.generated.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.generated.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from penstock.protocol.generated.offset_fetch_request import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from penstock.protocol.generated.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment

Arguments = dict[str, str]


def run(driver: GroupDriver, line: str) -> str:
    word, *rest = line.split()
    arguments = dict(each.split("=", 1) for each in rest)
    mark = len(driver.told)
    driver.show_consumer_record = consumer_commands.show_record
    driver.show_streams_record = streams_commands.show_record
    COMMANDS[word](driver, arguments)
    return "\n".join(driver.told[mark:]) or "ok"


def error_name(code: int) -> str:
    return ErrorCode(code).name


def _name(arguments: Arguments, word: str) -> str:
    return arguments.get("as") or f"{word} {arguments.get('member') or arguments.get('client', '')}".strip()


def join(driver: GroupDriver, arguments: Arguments) -> None:
    """client=NAME [member=ID] [instance=ID] [topics=a,b] [protocols=range,sticky] [type=] [session=] [rebalance=]"""
    metadata = subscription(arguments.get("topics", "t").split(","))
    names = [name for name in arguments.get("protocols", "range").split(",") if name]
    request = JoinGroupRequest(
        group_id=arguments.get("group", "g"),
        session_timeout_ms=int(arguments.get("session", 10_000)),
        rebalance_timeout_ms=int(arguments.get("rebalance", 60_000)),
        member_id=full(arguments.get("member", "")),
        group_instance_id=arguments.get("instance"),
        protocol_type=arguments.get("type", "consumer"),
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names],
    )
    version = int(arguments.get("version", 9))
    context = RequestContext(version, arguments.get("client", ""), "/127.0.0.1")
    driver.request(_name(arguments, "join"), driver.shard.join, request, context, _show_join)


def _show_join(answer: Any) -> str:
    if answer.error_code:
        return f"{error_name(answer.error_code)} member={answer.member_id}"
    text = f"generation={answer.generation_id} protocol={answer.protocol_name} leader={answer.leader}"
    text += f" member={answer.member_id}"
    if answer.members:
        text += f" members=[{', '.join(member.member_id for member in answer.members)}]"
    return text + (" skip-assignment" if answer.skip_assignment else "")


def sync(driver: GroupDriver, arguments: Arguments) -> None:
    """member=ID generation=N [instance=ID] [assign=ID:part,ID:part]"""
    pairs = [each.rsplit(":", 1) for each in arguments.get("assign", "").split(",") if each]
    request = SyncGroupRequest(
        group_id=arguments.get("group", "g"),
        generation_id=int(arguments["generation"]),
        member_id=full(arguments["member"]),
        group_instance_id=arguments.get("instance"),
        protocol_type=arguments.get("type"),
        protocol_name=arguments.get("protocol"),
        assignments=[SyncGroupRequestAssignment(member_id=full(who), assignment=what.encode()) for who, what in pairs],
    )
    driver.request(_name(arguments, "sync"), driver.shard.sync, request, RequestContext(5), _show_sync)


def _show_sync(answer: Any) -> str:
    return error_name(answer.error_code) if answer.error_code else f"assignment={answer.assignment.decode()!r}"


def heartbeat(driver: GroupDriver, arguments: Arguments) -> None:
    """member=ID generation=N [instance=ID]"""
    request = HeartbeatRequest(
        group_id=arguments.get("group", "g"),
        generation_id=int(arguments["generation"]),
        member_id=full(arguments["member"]),
        group_instance_id=arguments.get("instance"),
    )
    name = _name(arguments, "heartbeat")
    driver.request(name, driver.shard.heartbeat, request, RequestContext(4), lambda a: error_name(a.error_code))  # type: ignore[attr-defined]  # a response


def leave(driver: GroupDriver, arguments: Arguments) -> None:
    """[members=ID,ID] [instances=ID,ID] [version=N]"""
    version = int(arguments.get("version", 5))
    members = [MemberIdentity(member_id=full(each)) for each in arguments.get("members", "").split(",") if each]
    for each in arguments.get("instances", "").split(","):
        instance_id, _, member_id = each.partition(":")
        if each:
            members.append(MemberIdentity(member_id=full(member_id), group_instance_id=instance_id))
    request = LeaveGroupRequest(group_id=arguments.get("group", "g"), members=members)
    if version < 3:
        request = LeaveGroupRequest(group_id=arguments.get("group", "g"), member_id=members[0].member_id)
    driver.request("leave", driver.shard.leave, request, RequestContext(version), _show_leave)


def _show_leave(answer: Any) -> str:
    if not answer.members:
        return error_name(answer.error_code)
    return " ".join(f"{m.member_id or m.group_instance_id}={error_name(m.error_code)}" for m in answer.members)


def _partitions(text: str) -> dict[str, list[tuple[int, str]]]:
    topics: dict[str, list[tuple[int, str]]] = {}
    for each in text.split(","):
        where, _, what = each.partition(":")
        topic, _, partition = where.rpartition("-")
        topics.setdefault(topic, []).append((int(partition), what))
    return topics


def commit(driver: GroupDriver, arguments: Arguments) -> None:
    """offsets=t-0:5,t-1:7 [member=ID generation=N] [instance=ID] [metadata=TEXT] [retention=MS] [version=N]"""
    metadata = arguments.get("metadata", "")
    request = OffsetCommitRequest(
        group_id=arguments.get("group", "g"),
        generation_id_or_member_epoch=int(arguments.get("generation", -1)),
        member_id=full(arguments.get("member", "")),
        group_instance_id=arguments.get("instance"),
        retention_time_ms=int(arguments.get("retention", -1)),
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=bytes([int(arguments.get("id", 0))]) * 16,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=int(offset), committed_metadata=metadata
                    )
                    for index, offset in partitions
                ],
            )
            for topic, partitions in _partitions(arguments["offsets"]).items()
        ],
    )
    context = RequestContext(int(arguments.get("version", 9)))
    driver.request(_name(arguments, "commit"), driver.shard.commit_offsets, request, context, _show_partitions)


def _show_partitions(answer: Any) -> str:
    return " ".join(
        f"{topic.name}-{partition.partition_index}={error_name(partition.error_code)}"
        for topic in answer.topics
        for partition in topic.partitions
    )


def fetch(driver: GroupDriver, arguments: Arguments) -> None:
    """[offsets=t-0,t-1], all without; [id=N] a topic id"""
    topics = None
    if "offsets" in arguments:
        topics = [
            OffsetFetchRequestTopics(
                name=topic,
                topic_id=bytes([int(arguments.get("id", 0))]) * 16,
                partition_indexes=[index for index, _ in partitions],
            )
            for topic, partitions in _partitions(arguments["offsets"]).items()
        ]
    request = OffsetFetchRequestGroup(group_id=arguments.get("group", "g"), topics=topics)
    stable = arguments.get("stable") == "yes"
    driver.request("fetch", driver.shard.fetch_offsets, request, stable, _show_fetched)


def _show_fetched(answer: Any) -> str:
    parts = []
    for topic in answer.topics:
        for each in topic.partitions:
            what = error_name(each.error_code) if each.error_code else each.committed_offset
            parts.append(f"{topic.name}-{each.partition_index}={what}")
    return " ".join(parts) or "nothing"


def delete_offsets(driver: GroupDriver, arguments: Arguments) -> None:
    """offsets=t-0,t-1"""
    request = OffsetDeleteRequest(
        group_id=arguments.get("group", "g"),
        topics=[
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index, _ in partitions]
            )
            for topic, partitions in _partitions(arguments["offsets"]).items()
        ],
    )
    driver.request("delete-offsets", driver.shard.delete_offsets, request, RequestContext(0), _show_partitions)


def describe(driver: GroupDriver, arguments: Arguments) -> None:
    """groups=g,h [version=N]"""

    def show(answer: Any) -> str:
        lines = []
        for group in answer:
            error = f" {error_name(group.error_code)} {group.error_message!r}" if group.error_code else ""
            text = f"{group.group_id} {group.group_state} type={group.protocol_type!r} protocol={group.protocol_data!r}"
            lines.append(text + error)
            for member in group.members:
                who = f"{member.member_id} instance={member.group_instance_id} client={member.client_id}"
                lines.append(f"{who} host={member.client_host} assignment={member.member_assignment.decode()!r}")
        return "\n  ".join(lines)

    context = RequestContext(int(arguments.get("version", 6)))
    driver.request("describe", driver.shard.describe, arguments.get("groups", "g").split(","), context, show)


def list_groups(driver: GroupDriver, arguments: Arguments) -> None:
    """[states=Stable,Empty] [types=classic]"""

    def show(answer: Any) -> str:
        return " ".join(f"{g.group_id}({g.group_state},{g.group_type},{g.protocol_type!r})" for g in answer) or "none"

    request = ListGroupsRequest(
        states_filter=[each for each in arguments.get("states", "").split(",") if each],
        types_filter=[each for each in arguments.get("types", "").split(",") if each],
    )
    driver.request("list", driver.shard.list_groups, request, RequestContext(5), show)


def delete_groups(driver: GroupDriver, arguments: Arguments) -> None:
    """groups=g,h"""

    def show(answer: Any) -> str:
        return " ".join(f"{each.group_id}={error_name(each.error_code)}" for each in answer)

    ids = arguments["groups"].split(",")
    driver.request("delete-groups", driver.shard.delete_groups, ids, RequestContext(2), show)


def forget_topics(driver: GroupDriver, arguments: Arguments) -> None:
    """topics=t,u [id=N]: the topics were deleted"""
    topic_id = bytes([int(arguments.get("id", 0))]) * 16
    topics = [(topic, topic_id) for topic in arguments["topics"].split(",")]
    driver.request("forget-topics", driver.shard.forget_topics, topics, None, lambda _: "done")


def advance(driver: GroupDriver, arguments: Arguments) -> None:
    """ms=N"""
    driver.advance(int(arguments["ms"]))


def fail_append(driver: GroupDriver, arguments: Arguments) -> None:
    """error=NAME: the next append fails"""
    driver.append_error = ErrorCode[arguments["error"]]


def hold_commits(driver: GroupDriver, arguments: Arguments) -> None:
    """the watermark stands still"""
    driver.holds_commits = True


def release_commits(driver: GroupDriver, arguments: Arguments) -> None:
    driver.release()


def limit(driver: GroupDriver, arguments: Arguments) -> None:
    """max_size=N: the setting of the coordinator that is next"""
    driver.config = replace(driver.config, max_size=int(arguments["max_size"]))


def fail_over(driver: GroupDriver, arguments: Arguments) -> None:
    driver.fail_over()


COMMANDS: dict[str, Callable[[GroupDriver, Arguments], None]] = {
    "join": join,
    "sync": sync,
    "heartbeat": heartbeat,
    "leave": leave,
    "commit": commit,
    "fetch": fetch,
    "delete-offsets": delete_offsets,
    "describe": describe,
    "list": list_groups,
    "delete-groups": delete_groups,
    "forget-topics": forget_topics,
    "advance": advance,
    "fail-append": fail_append,
    "hold-commits": hold_commits,
    "release-commits": release_commits,
    "limit": limit,
    "fail-over": fail_over,
    "topics": consumer_commands.topics,
    "report": consumer_commands.report,
    "thread": streams_commands.thread,
}
