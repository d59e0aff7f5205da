"""A member's way from the tasks it has to those it is to have, one heartbeat at a time.

First it gives up what is not to be its own (UNREVOKED_PARTITIONS, in its old epoch); once it is known not to have that
any more, it reaches the target epoch and gets what is free; it waits for the rest (UNRELEASED_PARTITIONS). A task that
is to be active is free when nobody runs it, and nobody else in the process keeps its state.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.groups.modern.membership import MemberState
from penstock.core.groups.streams.group import StreamsGroup, StreamsMember
from penstock.core.groups.streams.tasks import NO_TASKS, Task, TaskIds, Tasks, each, gathered


def reconcile(
    group: StreamsGroup, member: StreamsMember, target: Tasks, target_epoch: int, owned: Tasks | None
) -> StreamsMember:
    """The member after this heartbeat. `owned`: what it says to have; None where it does not say."""
    match member.state:
        case MemberState.STABLE if member.epoch == target_epoch:
            return member
        case MemberState.UNREVOKED_PARTITIONS:
            if owned is None or owned.has_any_of(member.revoking):
                return member
            return _step(group, member, target, target_epoch, owned, min(member.epoch + 1, target_epoch))
        case MemberState.UNKNOWN:
            if owned is None or not owned.is_empty:
                said = (
                    "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin."
                )
                raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, said)
            return _step(group, member, target, target_epoch, owned, target_epoch)
    return _step(group, member, target, target_epoch, owned, member.epoch)


def _step(
    group: StreamsGroup, member: StreamsMember, target: Tasks, target_epoch: int, owned: Tasks | None, epoch: int
) -> StreamsMember:
    """`epoch`: where the member stays if it has to give something up first."""
    kept = Tasks(*(_common(has, wanted) for has, wanted in zip(member.assigned, target, strict=True)))
    revoked = Tasks(*(_without(has, wanted) for has, wanted in zip(member.assigned, target, strict=True)))
    if not revoked.is_empty and (owned is None or owned.has_any_of(revoked)):
        return _moved(member, MemberState.UNREVOKED_PARTITIONS, epoch, kept, revoked)
    wanted = Tasks(*(_without(tasks, has) for tasks, has in zip(target, kept, strict=True)))
    free = _free(group, member, wanted)
    assigned = Tasks(*(gathered((*each(has), *each(got))) for has, got in zip(kept, free, strict=True)))
    state = MemberState.STABLE if free == wanted else MemberState.UNRELEASED_PARTITIONS
    return _moved(member, state, target_epoch, assigned, NO_TASKS)


def _moved(member: StreamsMember, state: MemberState, epoch: int, assigned: Tasks, revoking: Tasks) -> StreamsMember:
    active = (*each(assigned.active), *each(revoking.active))
    return replace(
        member,
        state=state,
        epoch=epoch,
        previous_epoch=member.previous_epoch if epoch == member.epoch else member.epoch,
        assigned=assigned,
        revoking=revoking,
        since={task: member.since.get(task, epoch) for task in active},
    )


def _free(group: StreamsGroup, member: StreamsMember, wanted: Tasks) -> Tasks:
    """Without what is with others. What the member itself had to give up is free for it: nobody can have got it."""
    if wanted.is_empty:
        return wanted
    running: set[Task] = set()
    here: set[Task] = set()
    for other in group.members.values():
        if other.member_id == member.member_id:
            continue
        for tasks in (other.assigned, other.revoking):
            running.update(each(tasks.active))
            if other.process_id == member.process_id:
                here.update(task for role in tasks for task in each(role))
    active = gathered(task for task in each(wanted.active) if task not in running and task not in here)
    rest = (gathered(task for task in each(role) if task not in here) for role in (wanted.standby, wanted.warmup))
    return Tasks(active, *rest)


def _common(one: TaskIds, other: TaskIds) -> TaskIds:
    keep = frozenset(each(other))
    return gathered(task for task in each(one) if task in keep)


def _without(one: TaskIds, other: TaskIds) -> TaskIds:
    gone = frozenset(each(other))
    return gathered(task for task in each(one) if task not in gone)
