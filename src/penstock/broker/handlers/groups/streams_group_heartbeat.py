"""StreamsGroupHeartbeat 0: join, stay in and leave a streams group (KIP-1071).

Internal topics that its topology needs are made with the rights of the member that asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import INTERNAL_TOPICS, is_valid_text, topic_name_fault
from penstock.broker.handlers.groups.asking import context, refusal, streams_groups_enabled
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.streams_group_heartbeat_request import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    Topology,
)
from penstock.protocol.generated.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse


async def handle(
    session: Session, header: RequestHeader, request: StreamsGroupHeartbeatRequest
) -> StreamsGroupHeartbeatResponse:
    try:
        _check(session, request)
        answer: StreamsGroupHeartbeatResponse = await session.services.streams_groups.heartbeat(
            request, context(session, header), _may_create(session)
        )
    except KafkaError as error:
        return StreamsGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
    return answer


def _check(session: Session, request: StreamsGroupHeartbeatRequest) -> None:
    refused = refusal(session, Operation.READ, request.group_id)
    if not streams_groups_enabled(session):
        refused = ErrorCode.UNSUPPORTED_VERSION
    if refused is not None:
        raise KafkaError(refused)
    if not all(is_valid_text(text) for text in _texts(request)):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if request.topology is not None:
        _check_topics(session, list(dict.fromkeys(_topics(request.topology))))


def _check_topics(session: Session, names: list[str]) -> None:
    invalid = [name for name in names if topic_name_fault(name) is not None]
    if invalid:
        said = f"Topic names {', '.join(invalid)} are not valid topic names."
        raise KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, said)
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        said = f"Use of Kafka internal topics {', '.join(internal)} in a Kafka Streams topology is prohibited."
        raise KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, said)
    if not all(session.allows(Operation.DESCRIBE, Resource.TOPIC, name) for name in names):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _topics(topology: Topology) -> Iterator[str]:
    for one in topology.subtopologies:
        yield from one.source_topics
        yield from one.repartition_sink_topics
        yield from (topic.name for topic in one.repartition_source_topics)
        yield from (topic.name for topic in one.state_changelog_topics)


def _texts(request: StreamsGroupHeartbeatRequest) -> Iterator[str]:
    """What is stored of a member, and told to others."""
    yield from (request.member_id, request.rack_id or "", request.process_id or "")
    yield from (text for tag in request.client_tags or () for text in (tag.key, tag.value))
    if request.user_endpoint is not None:
        yield request.user_endpoint.host
    for one in () if request.topology is None else request.topology.subtopologies:
        yield from _texts_of(one)


def _texts_of(one: Subtopology) -> Iterator[str]:
    yield one.subtopology_id
    for topic in (*one.state_changelog_topics, *one.repartition_source_topics):
        yield from (text for config in topic.topic_configs for text in (config.key, config.value))


def _may_create(session: Session) -> Callable[[str], bool]:
    """Any topic, or each by its name."""
    anywhere = session.allows(Operation.CREATE, Resource.CLUSTER)
    return lambda name: anywhere or session.allows(Operation.CREATE, Resource.TOPIC, name)
