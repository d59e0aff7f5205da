"""The commands of the transcripts of streams groups: heartbeats of an application's threads."""

from __future__ import annotations

from typing import Any

from group_driver import GroupDriver

from penstock.core.coordinator.result import CoordinatorRecord
from penstock.core.groups.records import read_foreign_group_id
from penstock.core.groups.state import RequestContext
from penstock.core.groups.streams import records
from penstock.core.groups.streams.group import StreamsGroup
from penstock.core.groups.streams.heartbeat import Heartbeat
from penstock.core.groups.streams.layout import Status
from penstock.core.groups.streams.tasks import TaskIds, Tasks, each, read
from penstock.protocol.generated import streams_group_heartbeat_request as asked

Arguments = dict[str, str]
_NAMES = {
    records.GROUP: "group",
    records.TOPOLOGY: "topology",
    records.MEMBER: "member",
    records.TARGET_EPOCH: "target epoch",
    records.TARGET: "target",
    records.CURRENT: "current",
}


def thread(driver: GroupDriver, arguments: Arguments) -> None:
    """member=ID epoch=N [reads=x [keeps=store]] [process=ID] [active=0-0,0-1] [standby=0-2]"""
    epoch = int(arguments["epoch"])
    says = "active" in arguments or "standby" in arguments
    request = asked.StreamsGroupHeartbeatRequest(
        group_id="g",
        member_id=arguments["member"],
        member_epoch=epoch,
        rebalance_timeout_ms=-1 if epoch else 60_000,
        process_id=arguments.get("process", arguments["member"] if not epoch else None),
        topology=_topology(arguments) if "reads" in arguments else None,
        active_tasks=_owned(arguments.get("active", "")) if says else None,
        standby_tasks=_owned(arguments.get("standby", "")) if says else None,
        warmup_tasks=[] if says else None,
    )
    context = RequestContext(0, "client", "/127.0.0.1")
    driver.request(f"thread {request.member_id}", driver.shard.streams_heartbeat, request, context, _show_answer)


def _topology(arguments: Arguments) -> asked.Topology:
    kept = [asked.TopicInfo(name=arguments["keeps"])] if "keeps" in arguments else []
    one = asked.Subtopology(
        subtopology_id="0", source_topics=arguments["reads"].split(","), state_changelog_topics=kept
    )
    return asked.Topology(subtopologies=[one])


def _owned(text: str) -> list[asked.TaskIds]:
    pairs = [task.split("-") for task in text.split(",") if task]
    return [asked.TaskIds(subtopology_id=name, partitions=[int(number)]) for name, number in pairs]


def _show_answer(heard: Any) -> str:
    if not isinstance(heard, Heartbeat):
        return str(heard)
    answer, missing = heard
    text = f"epoch={answer.member_epoch} again in {answer.heartbeat_interval_ms} ms"
    if answer.active_tasks is not None:
        text += f", tasks {_show(Tasks(read(answer.active_tasks), read(answer.standby_tasks or [])))}"
    for status in answer.status or ():
        text += f", {Status(status.status_code).name}"
    if missing:
        text += f", to be made: {' '.join(f'{topic.name}={topic.partitions}' for topic in missing)}"
    return text


def show_record(kind: int, record: CoordinatorRecord) -> str:
    """By replaying it into nothing."""
    of = f"streams group {read_foreign_group_id(record.key)}"
    if record.value is None:
        return f"{of} {_NAMES[kind]} tombstone"
    groups: dict[str, StreamsGroup] = {}
    records.replay(groups, kind, record)
    (group,) = groups.values()
    if kind == records.GROUP:
        return f"{of} epoch={group.epoch} validated={group.validated_epoch}"
    if kind == records.TOPOLOGY:
        assert group.topology is not None
        return f"{of} topology epoch={group.topology.epoch} of {' '.join(group.topology.required_topics())}"
    if kind == records.TARGET_EPOCH:
        return f"{of} target epoch={group.target_epoch}"
    if kind == records.TARGET:
        ((member_id, target),) = group.targets.items()
        return f"{of} target of {member_id}: {_show(target)}"
    (member,) = group.members.values()
    if kind == records.MEMBER:
        return f"{of} member {member.member_id} process={member.process_id}"
    giving = "" if member.revoking.is_empty else f" revoking {_show(member.revoking)}"
    return f"{of} current {member.member_id} epoch={member.epoch} {member.state.name} {_show(member.assigned)}{giving}"


def _show(tasks: Tasks) -> str:
    standby = f" standby [{_names(tasks.standby)}]" if tasks.standby else ""
    return f"[{_names(tasks.active)}]{standby}"


def _names(tasks: TaskIds) -> str:
    return " ".join(f"{name}-{number}" for name, number in each(tasks))
