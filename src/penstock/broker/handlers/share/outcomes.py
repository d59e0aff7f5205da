"""What the handlers of share states share: one question a partition, each with an outcome of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import is_valid_text
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.core.share.requests import ShareKey

T = TypeVar("T")


async def outcomes(
    session: Session,
    request: Any,
    ask: Callable[[ShareKey, Any], Awaitable[T]],
    tell: Callable[[int, T], Any],
    refuse: Callable[..., Any],
) -> list[tuple[bytes, list[Any]]]:
    """By topic, in the request's order: what `tell` makes of the answer, or `refuse` of the error. Nothing for a group
    without a name, as in Kafka."""
    found = []
    for topic in request.topics if request.group_id else []:
        results = []
        for one in topic.partitions:
            try:
                _check(session, request.group_id)
                key = ShareKey(request.group_id, topic.topic_id, one.partition)
                results.append(tell(one.partition, await ask(key, one)))
            except KafkaError as error:
                results.append(refuse(partition=one.partition, error_code=error.code, error_message=error.message))
        found.append((topic.topic_id, results))
    return found


def _check(session: Session, group_id: str) -> None:
    if not session.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if not is_valid_text(group_id):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the group id is not UTF-8")
