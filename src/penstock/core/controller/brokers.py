"""Brokers come and go: registration, unfencing, fencing, controlled shutdown, and the leaders that follow from each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import LOST_DIRECTORY, NO_ID, UNASSIGNED_DIRECTORY
from penstock.core.controller.elections import Election, Wish, decide_change
from penstock.core.controller.outlook import Outlook
from penstock.core.controller.result import Result
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import NO_LEADER, Broker, Image, Partition
from penstock.protocol.generated.broker_registration_change_record import BrokerRegistrationChangeRecord
from penstock.protocol.generated.broker_registration_request import BrokerRegistrationRequest
from penstock.protocol.generated.broker_registration_response import BrokerRegistrationResponse
from penstock.protocol.generated.register_broker_record import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from penstock.protocol.generated.unregister_broker_record import UnregisterBrokerRecord
from penstock.protocol.generated.unregister_broker_request import UnregisterBrokerRequest
from penstock.protocol.generated.unregister_broker_response import UnregisterBrokerResponse
from penstock.protocol.message import Message

FENCED, UNFENCED = 1, -1
IN_CONTROLLED_SHUTDOWN = 1
_RESERVED_DIRECTORIES = (NO_ID, UNASSIGNED_DIRECTORY, LOST_DIRECTORY)


def check_broker_epoch(image: Image, broker_id: int, epoch: int) -> None:
    """A request of a broker counts only from its present incarnation."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {broker_id} is not registered")
    if broker.epoch != epoch:
        text = f"broker {broker_id} has the epoch {broker.epoch}, the request says {epoch}"
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, text)


def decide_register_broker(
    image: Image,
    node: Node,
    request: BrokerRegistrationRequest,
    *,
    cluster_id: str,
    next_offset: int,
    has_session: bool = False,
) -> Result[BrokerRegistrationResponse]:
    """A broker announces itself. Its epoch is the offset that its record will have, so it grows with each start.

    `has_session`: another incarnation of the same id is alive, as its heartbeats say. A broker that cannot tell the
    epoch with which it stopped may have lost what it had not synced: it is in no ISR and no ELR until it has caught up.
    """
    try:
        _check_registration(image, request, cluster_id, has_session)
    except KafkaError as error:
        return Result(BrokerRegistrationResponse(error_code=error.code))
    before = image.brokers.get(request.broker_id)
    if before is not None and before.incarnation_id == request.incarnation_id:
        record = _registration(request, before.epoch, before)
        record.fenced, record.in_controlled_shutdown = before.fenced, before.in_controlled_shutdown
        return Result(BrokerRegistrationResponse(broker_epoch=before.epoch), [record])
    clean = before is not None and before.epoch == request.previous_broker_epoch
    changes = _without(image, node, request.broker_id, lost=not clean)
    records = [_registration(request, next_offset, before), *changes]
    return Result(BrokerRegistrationResponse(broker_epoch=next_offset), records)


def _registration(request: BrokerRegistrationRequest, epoch: int, before: Broker | None) -> RegisterBrokerRecord:
    """What was cordoned stays so until the broker's heartbeats tell otherwise: they begin only after this."""
    cordoned = () if before is None else before.cordoned_log_dirs or ()
    return RegisterBrokerRecord(
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
        fenced=True,
        log_dirs=list(request.log_dirs),
        cordoned_log_dirs=[one for one in cordoned if one in request.log_dirs] or None,
    )


def _check_registration(image: Image, request: BrokerRegistrationRequest, cluster_id: str, has_session: bool) -> None:
    if request.cluster_id != cluster_id:
        text = f"broker {request.broker_id} belongs to the cluster {request.cluster_id}, this is {cluster_id}"
        raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, text)
    before = image.brokers.get(request.broker_id)
    if before is not None and before.incarnation_id != request.incarnation_id and has_session:
        text = f"another broker is registered as {request.broker_id} and alive"
        raise KafkaError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, text)
    if request.is_migrating_zk_broker:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, "brokers from before KRaft cannot register")
    _check_directories(image, request)
    ranges = {one.name: (one.min_supported_version, one.max_supported_version) for one in request.features}
    for name, level in image.features.items():
        low, high = ranges.get(name, (0, 0))
        if not low <= level <= high:
            text = f"broker {request.broker_id} supports {name} from {low} to {high}, the cluster is at {level}"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, text)


def _check_directories(image: Image, request: BrokerRegistrationRequest) -> None:
    named = request.log_dirs
    taken = {
        one: other.id for other in image.brokers.values() for one in other.log_dirs if other.id != request.broker_id
    }
    fault = None
    if not named:
        fault = "no log directory is named"
    elif any(one in _RESERVED_DIRECTORIES for one in named):
        fault = "a reserved id is named as a log directory"
    elif len(set(named)) < len(named):
        fault = "a log directory is named twice"
    elif any(one in taken for one in named):
        fault = f"broker {next(taken[one] for one in named if one in taken)} has registered the same log directory"
    if fault is not None:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, f"broker {request.broker_id}: {fault}")


def decide_unfence_broker(image: Image, node: Node, broker_id: int) -> list[Message]:
    """A registered broker is ready: it may lead, and leads where nobody else does and it holds what was committed."""
    broker = image.brokers[broker_id]
    outlook = Outlook(image, node, joining=broker_id)
    change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=UNFENCED)
    return [change, *_changes(outlook, _is_leaderless, lambda _: Wish())]


def decide_fence_broker(image: Image, node: Node, broker_id: int) -> list[Message]:
    """A broker is gone: others lead what it led, and nobody waits for it any more."""
    broker = image.brokers[broker_id]
    change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=FENCED)
    return [*_without(image, node, broker_id), change]


def holds_alone(image: Image, node: Node, broker_id: int) -> bool:
    """Whether the broker leads something that nobody else could lead."""
    outlook = Outlook(image, node, leaving=broker_id)
    led = _led_by(image, broker_id)
    return not all(_has_heir(outlook, one) for one in led)


def decide_leaders_away(image: Image, node: Node, broker_id: int) -> list[Message]:
    """A broker cannot write and cannot be fenced either, for it alone holds something that can still be read: others
    lead all that they can."""
    outlook = Outlook(image, node, leaving=broker_id)

    def concerned(partition: Partition) -> bool:
        return partition.leader == broker_id and _has_heir(outlook, partition)

    return list(_changes(outlook, concerned, lambda partition: _isr_without(partition, broker_id)))


def decide_controlled_shutdown(image: Image, node: Node, broker_id: int) -> list[Message]:
    """A broker wants to go: others take over while it still serves."""
    broker = image.brokers[broker_id]
    records: list[Message] = []
    if not broker.in_controlled_shutdown:
        records.append(
            BrokerRegistrationChangeRecord(
                broker_id=broker_id, broker_epoch=broker.epoch, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN
            )
        )
    return [*records, *_without(image, node, broker_id)]


def decide_unregister_broker(
    image: Image, node: Node, request: UnregisterBrokerRequest
) -> Result[UnregisterBrokerResponse]:
    """A broker is gone for good: the cluster forgets it."""
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        text = f"Broker ID {request.broker_id} is not currently registered"
        return Result(UnregisterBrokerResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED, error_message=text))
    forgotten = UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    return Result(UnregisterBrokerResponse(error_message=None), [*_without(image, node, broker.id), forgotten])


def decide_offline_directories(image: Image, node: Node, broker_id: int, offline: list[bytes]) -> list[Message]:
    """A broker lost some of its disks: what lies on them is led by others."""
    broker = image.brokers[broker_id]
    lost = [one for one in broker.log_dirs if one in offline]
    if not lost:
        return []

    def lies_there(partition: Partition) -> bool:
        held = dict(zip(partition.replicas, partition.directories, strict=False))
        return broker_id in partition.isr and held.get(broker_id) in lost

    left = [one for one in broker.log_dirs if one not in offline]
    change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, log_dirs=left)
    outlook = Outlook(image, node, leaving=broker_id)
    return [*_changes(outlook, lies_there, lambda partition: _isr_without(partition, broker_id)), change]


def leads_any(image: Image, broker_id: int) -> bool:
    return any(_led_by(image, broker_id))


def _led_by(image: Image, broker_id: int) -> Iterator[Partition]:
    return (one for topic in image.topics.values() for one in topic.partitions.values() if one.leader == broker_id)


def _has_heir(outlook: Outlook, partition: Partition) -> bool:
    held = dict(zip(partition.replicas, partition.directories, strict=False))
    return any(outlook.may_lead(one, held.get(one)) for one in partition.isr)


def _without(image: Image, node: Node, broker_id: int, *, lost: bool = False) -> Iterator[Message]:
    """`lost`: what it had not synced may be gone, so it is not eligible either."""
    outlook = Outlook(image, node, leaving=broker_id)
    with_eligible = lost and image.eligible_leader_replicas_enabled

    def concerned(partition: Partition) -> bool:
        return broker_id in partition.isr or (with_eligible and broker_id in partition.eligible)

    gone = (broker_id,) if with_eligible else ()
    return _changes(outlook, concerned, lambda partition: _isr_without(partition, broker_id, gone))


def _isr_without(partition: Partition, broker_id: int, lost: tuple[int, ...] = ()) -> Wish:
    return Wish(isr=[one for one in partition.isr if one != broker_id], lost=lost)


def _is_leaderless(partition: Partition) -> bool:
    return partition.leader == NO_LEADER


def _changes(
    outlook: Outlook, concerned: Callable[[Partition], bool], wish_of: Callable[[Partition], Wish]
) -> Iterator[Message]:
    for topic in outlook.image.topics.values():
        found = [(index, one) for index, one in topic.partitions.items() if concerned(one)]
        unclean = bool(found) and outlook.unclean_allowed(topic.name)
        for index, partition in found:
            wish = wish_of(partition)
            if unclean:
                wish = Wish(isr=wish.isr, lost=wish.lost, election=Election.UNCLEAN)
            record = decide_change(outlook, topic, index, wish)
            if record is not None:
                yield record
