"""What a group subscribes to: by name, and by regular expressions that are matched against the metadata image."""

from __future__ import annotations

from collections.abc import Callable

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.expressions import expression_fault, matches
from penstock.core.coordinator.result import Now
from penstock.core.groups.consumer.draft import Draft
from penstock.core.groups.consumer.group import ConsumerGroup, Resolved
from penstock.core.groups.consumer.member import ConsumerMember
from penstock.core.groups.modern.metadata import Metadata
from penstock.core.groups.state import State

MayDescribe = Callable[[str], bool]
"""whether the client whose request leads to a look-up may know of a topic"""


def put_member(draft: Draft, before: ConsumerMember | None, member: ConsumerMember) -> bool:
    """Store what the member asks for, if that is new; whether it changes what the group subscribes to."""
    if member == before:
        return False
    if member.regex is not None and (before is None or member.regex != before.regex):
        _check_regex(member.regex)
    draft.put_subscription(member)
    if before is not None and before.regex is not None and before.regex != member.regex:
        drop_unused_regexes(draft)
    return before is None or (before.topics, before.regex) != (member.topics, member.regex)


def _check_regex(regex: str) -> None:
    fault = expression_fault(regex)
    if fault is not None:
        said = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {fault}."
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, said)


def drop_unused_regexes(draft: Draft) -> None:
    used = {member.regex for member in draft.group.members.values()}
    for regex in [regex for regex in draft.group.regexes if regex not in used]:
        draft.drop_regex(regex)


def refresh(state: State, draft: Draft, changed: bool, may_describe: MayDescribe, now: Now) -> None:
    """A new group epoch, where the group's subscriptions or the topics that they stand for have changed.

    A version of the topics counts as seen once there is nothing to write because of it: if a write fails, the next
    heartbeat tries again.
    """
    group = draft.group
    version = state.metadata.version
    seen = state.seen_versions.get(group.group_id) == version
    changed |= _resolve(state.metadata, draft, may_describe, now, everything=not seen)
    group = draft.group
    if seen and not changed and group.epoch:
        return
    metadata_hash = state.metadata.hash(group.subscribed_topics())
    if changed or not group.epoch or metadata_hash != group.metadata_hash:
        draft.set_epoch(group.epoch + 1, metadata_hash)
    else:
        state.seen_versions[group.group_id] = version


def bump(state: State, draft: Draft) -> None:
    """Members have gone: a new group epoch, without a look at expressions."""
    drop_unused_regexes(draft)
    group = draft.group
    draft.set_epoch(group.epoch + 1, state.metadata.hash(group.subscribed_topics()))


def subscribed_ids(group: ConsumerGroup, member: ConsumerMember, metadata: Metadata) -> dict[bytes, None]:
    ids: dict[bytes, None] = {}
    for name in group.topics_of(member):
        topic_id = metadata.topic_id(name)
        if topic_id is not None:
            ids[topic_id] = None
    return ids


def _resolve(metadata: Metadata, draft: Draft, may_describe: MayDescribe, now: Now, *, everything: bool) -> bool:
    """Look up the expressions that are new, or all of them; whether one stands for other topics than before."""
    changed = False
    used = dict.fromkeys(member.regex for member in draft.group.members.values() if member.regex is not None)
    for regex in used:
        known = draft.group.regexes.get(regex)
        if known is None or everything:
            topics = tuple(sorted(n for n in metadata.image.topics if matches(regex, n) and may_describe(n)))
            if known is None or known.topics != topics:
                draft.put_regex(regex, Resolved(topics, metadata.image.offset, now.wall_ms))
                changed = True
    return changed
