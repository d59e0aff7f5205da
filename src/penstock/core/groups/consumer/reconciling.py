"""A member's way from what it has to what it is to have, one heartbeat at a time.

First it gives up what is not to be its own (UNREVOKED_PARTITIONS, in its old epoch); once it is known not to own that
any more, it reaches the target epoch and gets what is free; it waits for the rest (UNRELEASED_PARTITIONS).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.groups.consumer.group import ConsumerGroup
from penstock.core.groups.consumer.member import ConsumerMember, Owned
from penstock.core.groups.modern.assignment import Assignment
from penstock.core.groups.modern.membership import MemberState


def reconcile(
    group: ConsumerGroup,
    member: ConsumerMember,
    subscribed_ids: Collection[bytes],
    owned: Assignment | None,
    *,
    subscription_changed: bool,
) -> ConsumerMember:
    """The member after this heartbeat. `owned`: what it says to have; None where it does not say."""
    if member.state is MemberState.STABLE:
        if member.epoch != group.target_epoch:
            return _step(group, member, subscribed_ids, owned, member.epoch)
        return _without_unsubscribed(member, subscribed_ids, owned) if subscription_changed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if _owns_any(owned, member.revoking):
            return _without_unsubscribed(member, subscribed_ids, owned) if subscription_changed else member
        # A changed subscription may have led here without a newer target: then there is no later epoch to go to.
        return _step(group, member, subscribed_ids, owned, min(member.epoch + 1, group.target_epoch))
    if member.state is MemberState.UNKNOWN:
        if owned is None or owned:
            said = "The member is in an unknown state. The member must abandon all its partitions and rejoin."
            raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, said)
        return _step(group, member, subscribed_ids, owned, group.target_epoch)
    return _step(group, member, subscribed_ids, owned, member.epoch)


def is_waiting(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Is something that the member is to have still with somebody else?"""
    for topic_id, partitions in group.target.get(member.member_id, {}).items():
        for partition in partitions:
            if group.owner(topic_id, partition) not in (None, member.member_id):
                return True
    return False


def _step(
    group: ConsumerGroup,
    member: ConsumerMember,
    subscribed_ids: Collection[bytes],
    owned: Assignment | None,
    epoch: int,
) -> ConsumerMember:
    """`epoch`: where the member stays if it has to give something up first."""
    target = group.target.get(member.member_id, {})
    kept: Owned = {}
    revoked: Owned = {}
    given: list[tuple[bytes, int]] = []
    waits = False
    for topic_id in dict.fromkeys((*target, *member.assigned)):
        wanted = target.get(topic_id, []) if topic_id in subscribed_ids else []
        has = member.assigned.get(topic_id, {})
        keep = {partition: has[partition] for partition in wanted if partition in has}
        give_up = {partition: since for partition, since in has.items() if partition not in keep}
        if keep:
            kept[topic_id] = keep
        if give_up:
            revoked[topic_id] = give_up
        for partition in wanted:
            if partition in has:
                continue
            # What the member itself had to give up is free for it: nobody else can have got it.
            if group.owner(topic_id, partition) in (None, member.member_id):
                given.append((topic_id, partition))
            else:
                waits = True
    if revoked and _owns_any(owned, revoked):
        return replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            epoch=epoch,
            previous_epoch=_previous(member, epoch),
            assigned=kept,
            revoking=revoked,
        )
    for topic_id, partition in given:
        kept.setdefault(topic_id, {})[partition] = group.target_epoch
    return replace(
        member,
        state=MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE,
        epoch=group.target_epoch,
        previous_epoch=_previous(member, group.target_epoch),
        assigned=kept,
        revoking={},
    )


def _previous(member: ConsumerMember, epoch: int) -> int:
    """The epoch before, which a client may still speak of that has missed an answer."""
    return member.previous_epoch if epoch == member.epoch else member.epoch


def _without_unsubscribed(
    member: ConsumerMember, subscribed_ids: Collection[bytes], owned: Assignment | None
) -> ConsumerMember:
    """The target does not know yet that the member has changed its mind, but it need not wait for that."""
    dropped = {topic_id: parts for topic_id, parts in member.assigned.items() if topic_id not in subscribed_ids}
    if not dropped:
        return member
    kept = {topic_id: parts for topic_id, parts in member.assigned.items() if topic_id in subscribed_ids}
    revoking = dict(member.revoking)
    for topic_id, parts in dropped.items():
        revoking[topic_id] = {**revoking.get(topic_id, {}), **parts}
    if _owns_any(owned, revoking):
        return replace(member, state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, revoking=revoking)
    return replace(member, assigned=kept)


def _owns_any(owned: Assignment | None, partitions: Owned) -> bool:
    """A member that does not say what it owns may own everything."""
    if owned is None:
        return True
    return any(at in partitions.get(topic_id, {}) for topic_id, ats in owned.items() for at in ats)
