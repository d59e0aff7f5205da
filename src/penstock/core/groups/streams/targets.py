"""The target: which tasks each member is to have, computed for a group epoch."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.base.errors import KafkaError
from penstock.core.coordinator.result import Now, Result
from penstock.core.groups.modern.settings import number
from penstock.core.groups.modern.timing import is_too_early
from penstock.core.groups.state import State
from penstock.core.groups.streams.assignor import Candidate, assign
from penstock.core.groups.streams.draft import Draft
from penstock.core.groups.streams.events import InitialDelayOver, delay_key
from penstock.core.groups.streams.group import StreamsGroup
from penstock.core.groups.streams.layout import Fault, Layout, Status, lay_out
from penstock.core.groups.streams.presence import Presence, Survey
from penstock.core.groups.streams.tasks import NO_TASKS, Tasks
from penstock.core.groups.streams.topology import Topology

STANDBY_REPLICAS = "num.standby.replicas"
"""as a group's record calls what `streams.num.standby.replicas` says"""


def presence(state: State, group_id: str) -> Presence:
    return state.streams.setdefault(group_id, Presence())


def survey(state: State, group_id: str, topology: Topology) -> Survey:
    """Made anew where topics have changed."""
    soft = state.streams.get(group_id)
    version = state.metadata.version
    if soft is not None and soft.survey is not None and soft.survey[:2] == (version, topology):
        return soft.survey
    layout = lay_out(topology, state.metadata.partition_count)
    made = Survey(version, topology, layout, state.metadata.hash(topology.required_topics()))
    presence(state, group_id).survey = made
    return made


def configs(state: State, group_id: str) -> dict[str, str]:
    """What an assignment depends on besides members and topics."""
    standbys = number(state.metadata.image, group_id, state.config.streams.standby_replicas)
    return {STANDBY_REPLICAS: str(standbys)}


def wait_for_more(state: State, group_id: str, now: Now) -> None:
    """The first member of a group is hardly ever the only one: of an application with many threads all come now."""
    delay_ms = number(state.metadata.image, group_id, state.config.streams.initial_delay)
    if delay_ms and delay_key(group_id) not in state.timers:
        state.timers.schedule(delay_key(group_id), now.ms + delay_ms, InitialDelayOver(group_id))


def update(state: State, draft: Draft, laid_out: Layout, now: Now) -> Fault | None:
    """Compute the target where something changed; or the reason why not yet."""
    group = draft.group
    if delay_key(group.group_id) in state.timers:
        return Fault(Status.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured initial rebalance delay.")
    if group.epoch <= group.target_epoch:
        return None
    interval_ms = number(state.metadata.image, group.group_id, state.config.streams.assignment_interval)
    if group.target_wall_ms and is_too_early(group.target_wall_ms, interval_ms, now):
        return Fault(Status.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured assignment interval.")
    for member_id, tasks in compute(group, laid_out, group.configs).items():
        if group.targets.get(member_id) != tasks:
            draft.put_target(member_id, tasks)
    draft.set_target_epoch(group.epoch, now.wall_ms)
    return None


def compute(group: StreamsGroup, laid_out: Layout, wanted: Mapping[str, str]) -> dict[str, Tasks]:
    if not laid_out.is_ready or group.topology is None:
        return dict.fromkeys(group.members, NO_TASKS)
    stateful = [one.name for one in group.topology.subtopologies if one.is_stateful]
    candidates = {
        member.member_id: Candidate(member.process_id, group.targets.get(member.member_id, NO_TASKS))
        for member in group.members.values()
    }
    return assign(laid_out.tasks, stateful, candidates, int(wanted.get(STANDBY_REPLICAS, 0)))


def on_delay_over(state: State, event: InitialDelayOver, now: Now) -> Result:
    """Who has come by now is part of the first assignment. A topology that can never work is told to its members."""
    group = state.store.streams.get(event.group_id)
    if group is None or not group.members or group.topology is None:
        return Result()
    draft = Draft(group)
    try:
        update(state, draft, survey(state, group.group_id, group.topology).layout, now)
    except KafkaError:
        return Result()
    return Result(records=draft.records)
