"""Brokers come and go: registration, unfencing, and the leaders that follow from it."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.base.configs.define import ResourceType
from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.controller.result import Result
from penstock.core.metadata.effective import Node, topic_config
from penstock.core.metadata.image import NO_LEADER, Image, Partition, Topic
from penstock.protocol.generated.broker_registration_change_record import BrokerRegistrationChangeRecord
from penstock.protocol.generated.broker_registration_request import BrokerRegistrationRequest
from penstock.protocol.generated.broker_registration_response import BrokerRegistrationResponse
from penstock.protocol.generated.partition_change_record import PartitionChangeRecord
from penstock.protocol.generated.register_broker_record import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from penstock.protocol.message import Message

FENCED, UNFENCED = 1, -1


def decide_register_broker(
    image: Image,
    request: BrokerRegistrationRequest,
    *,
    cluster_id: str,
    next_offset: int,
    has_session: bool = False,
) -> Result[BrokerRegistrationResponse]:
    """A broker announces itself. Its epoch is the offset that its record will have, so it grows with each start.

    `has_session`: another incarnation of the same id is alive, as its heartbeats say.
    """
    try:
        _check_registration(image, request, cluster_id, has_session)
    except KafkaError as error:
        return Result(BrokerRegistrationResponse(error_code=error.code))
    before = image.brokers.get(request.broker_id)
    same = before is not None and before.incarnation_id == request.incarnation_id
    epoch = before.epoch if before is not None and same else next_offset
    record = RegisterBrokerRecord(
        broker_id=request.broker_id,
        is_migrating_zk_broker=request.is_migrating_zk_broker,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        end_points=[
            BrokerEndpoint(name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol)
            for one in request.listeners
        ],
        features=[
            BrokerFeature(
                name=one.name,
                min_supported_version=one.min_supported_version,
                max_supported_version=one.max_supported_version,
            )
            for one in request.features
        ],
        rack=request.rack,
        fenced=before.fenced if before is not None and same else True,
        log_dirs=list(request.log_dirs),
    )
    return Result(BrokerRegistrationResponse(broker_epoch=epoch), [record])


def _check_registration(image: Image, request: BrokerRegistrationRequest, cluster_id: str, has_session: bool) -> None:
    if request.cluster_id != cluster_id:
        text = f"broker {request.broker_id} belongs to the cluster {request.cluster_id}, this is {cluster_id}"
        raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, text)
    before = image.brokers.get(request.broker_id)
    if before is not None and before.incarnation_id != request.incarnation_id and has_session:
        text = f"another broker is registered as {request.broker_id} and alive"
        raise KafkaError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, text)
    ranges = {one.name: (one.min_supported_version, one.max_supported_version) for one in request.features}
    for name, level in image.features.items():
        low, high = ranges.get(name, (0, 0))
        if not low <= level <= high:
            text = f"broker {request.broker_id} supports {name} from {low} to {high}, the cluster is at {level}"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, text)


def decide_unfence_broker(image: Image, node: Node, broker_id: int, *, lead_again: bool = False) -> list[Message]:
    """A registered broker is ready: it may lead, and leads where nobody else does.

    `lead_again`: it did not stop cleanly, so what it led it leads in a new epoch: its log may have lost a tail that
    somebody has read, and what comes in its place must not look the same.
    """
    broker = image.brokers[broker_id]
    records: list[Message] = []
    if broker.fenced:
        records.append(BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=UNFENCED))
    for topic in image.topics.values():
        records.extend(_elections(image, node, topic, broker_id))
        if lead_again:
            records.extend(
                PartitionChangeRecord(topic_id=topic.id, partition_id=index, leader=broker_id)
                for index, partition in topic.partitions.items()
                if partition.leader == broker_id
            )
    return records


def decide_fence_broker(image: Image, broker_id: int) -> list[Message]:
    """A broker is gone. Where it is the only one, its partitions keep it as their leader: nobody else could be."""
    broker = image.brokers[broker_id]
    return [BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=FENCED)]


def _elections(image: Image, node: Node, topic: Topic, broker_id: int) -> Iterator[Message]:
    for index, partition in topic.partitions.items():
        if partition.leader == NO_LEADER and broker_id in partition.replicas:
            change = _election(partition, broker_id, _unclean_allowed(image, node, topic.name))
            if change is not None:
                change.topic_id, change.partition_id = topic.id, index
                yield change


def _unclean_allowed(image: Image, node: Node, topic: str) -> bool:
    name = "unclean.leader.election.enable"
    own = image.config(ResourceType.TOPIC, topic).get(name)
    return (own or topic_config(image, node, topic)[name]).strip().lower() == "true"


def _election(partition: Partition, broker_id: int, unclean_allowed: bool) -> PartitionChangeRecord | None:
    """The change that makes `broker_id` lead, or None where it may not: only a replica that holds all that was
    committed may, which the in-sync ones do, and the eligible ones (KIP-966) when none is in sync."""
    if broker_id in partition.isr:
        return PartitionChangeRecord(leader=broker_id)
    if partition.isr:
        return None
    last_known: list[int] | None = [] if partition.last_known_eligible else None
    if broker_id in partition.eligible:
        eligible = [other for other in partition.eligible if other != broker_id]
        return PartitionChangeRecord(
            leader=broker_id, isr=[broker_id], eligible_leader_replicas=eligible, last_known_elr=last_known
        )
    if not partition.eligible and (partition.last_known_eligible == (broker_id,) or unclean_allowed):
        return PartitionChangeRecord(leader=broker_id, isr=[broker_id], last_known_elr=last_known)
    return None
