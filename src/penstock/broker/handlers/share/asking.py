"""What requests about share groups have in common: who asks, and what is said of records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.handlers.groups.asking import refusal
from penstock.broker.network.session import Session
from penstock.broker.shares import Acknowledgements
from penstock.core.security.acl import Operation, Resource
from penstock.core.sharing.acknowledging import Acknowledgement
from penstock.core.sharing.sessions import Place

_MEMBER_ID_LENGTH_MAX = 36


class AcknowledgementBatch(Protocol):
    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


def member_of(session: Session, group: str | None, member: str | None) -> tuple[str, str]:
    """The group and the member that ask. KafkaError where they may not."""
    if group is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the request names no group")
    if not session.allows(Operation.READ, Resource.GROUP, group):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not member or len(member) > _MEMBER_ID_LENGTH_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the request has no valid member id")
    return group, member


def offsets_refusal(session: Session, operation: Operation, group_id: str) -> ErrorCode | None:
    """Why the offsets of this group cannot be changed; None where they can."""
    if not session.services.image.share_groups_enabled:
        return ErrorCode.UNSUPPORTED_VERSION
    return refusal(session, operation, group_id) if group_id else ErrorCode.INVALID_GROUP_ID


def said(batches: Iterable[tuple[Place, AcknowledgementBatch]]) -> Acknowledgements:
    out: Acknowledgements = {}
    for place, one in batches:
        acknowledgement = Acknowledgement(one.first_offset, one.last_offset, one.acknowledge_types)
        out.setdefault(place, []).append(acknowledgement)
    return out


def readable(session: Session) -> Callable[[Place], bool]:
    """Whether the client may read the topic of a place; one that is not known here fails otherwise."""

    def allows(place: Place) -> bool:
        topic = session.services.image.topics_by_id.get(place[0])
        return topic is None or session.allows(Operation.READ, Resource.TOPIC, topic.name)

    return allows
