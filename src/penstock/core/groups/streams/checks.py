"""What a StreamsGroupHeartbeat must say, and what it may not say yet: INVALID_REQUEST, in Kafka's order and words."""

from __future__ import annotations

from penstock.core.groups.modern.membership import JOIN_EPOCH, LEAVE_STATIC_EPOCH
from penstock.core.groups.modern.requests import check, check_text
from penstock.core.groups.streams.layout import Layout
from penstock.core.groups.streams.tasks import Tasks, each, read
from penstock.protocol.generated.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest


def check_request(request: StreamsGroupHeartbeatRequest) -> None:
    _check_supported(request)
    check_text(request.member_id, "MemberId can't be empty.")
    check_text(request.group_id, "GroupId can't be empty.")
    check_text(request.rack_id, "RackId can't be empty.")
    epoch = request.member_epoch
    if epoch == JOIN_EPOCH:
        check(request.rebalance_timeout_ms != -1, "RebalanceTimeoutMs must be provided in first request.")
        check(not request.active_tasks, "ActiveTasks must be empty when (re-)joining.")
        check(not request.standby_tasks, "StandbyTasks must be empty when (re-)joining.")
        check(request.topology is not None, "Topology must be non-null when (re-)joining.")
    else:
        check(epoch != LEAVE_STATIC_EPOCH, "InstanceId can't be null.")
        said = f"MemberEpoch is {epoch}, but must be greater than or equal to -2."
        check(epoch > LEAVE_STATIC_EPOCH, said)
        check(request.topology is None, "Topology can only be provided when (re-)joining.")
    given = [one is not None for one in (request.active_tasks, request.standby_tasks, request.warmup_tasks)]
    check(all(given) or not any(given), "If one task-type is non-null, all must be non-null.")


def _check_supported(request: StreamsGroupHeartbeatRequest) -> None:
    check(request.instance_id is None, "Static membership is not yet supported.")
    check(request.task_offsets is None, "TaskOffsets are not supported yet.")
    check(request.task_end_offsets is None, "TaskEndOffsets are not supported yet.")
    check(not request.warmup_tasks, "WarmupTasks are not supported yet.")
    for subtopology in () if request.topology is None else request.topology.subtopologies:
        said = "Regular expressions for source topics are not supported yet."
        check(not subtopology.source_topic_regex, said)


def owned_tasks(request: StreamsGroupHeartbeatRequest) -> Tasks | None:
    """What the member says to have; None where it does not say."""
    if request.active_tasks is None or request.standby_tasks is None or request.warmup_tasks is None:
        return None
    return Tasks(read(request.active_tasks), read(request.standby_tasks), read(request.warmup_tasks))


def check_owned(owned: Tasks | None, layout: Layout) -> None:
    for name, number in (task for role in owned or () for task in each(role)):
        check(name in layout.tasks, f"Subtopology {name} does not exist in the topology.")
        there = layout.tasks[name]
        check(0 <= number < there, f"Task id {number} of subtopology {name} is invalid, there are {there} tasks.")
