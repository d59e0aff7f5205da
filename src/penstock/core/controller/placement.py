"""Where the replicas of new partitions go."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Random
from penstock.core.controller.outlook import only_directory
from penstock.core.metadata.image import Broker, Image, Partition


def place(image: Image, partitions: int, factor: int, random: Random) -> list[list[int]]:
    """Replicas for each new partition: leaders take turns from a random start, racks are spread, a fenced broker may
    follow but not lead, and a cordoned one gets nothing. INVALID_REPLICATION_FACTOR where there are too few brokers."""
    usable = [broker for broker in image.brokers.values() if not broker.in_controlled_shutdown and not broker.cordoned]
    _check(usable, factor, len([broker for broker in image.brokers.values() if broker.cordoned]))
    ring = _by_rack(usable)
    leaders = [at for at, broker in enumerate(ring) if broker.active]
    start = random.below(len(leaders))
    placed = []
    for index in range(partitions):
        turn = (start + index) // len(leaders)
        placed.append(_replicas(ring, leaders[(start + index) % len(leaders)], turn, factor))
    return placed


def _check(usable: list[Broker], factor: int, cordoned: int) -> None:
    if not any(broker.active for broker in usable):
        why = f"fenced, shutting down or cordoned ({cordoned})" if cordoned else "fenced or shutting down"
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): all brokers are {why}.",
        )
    if factor > len(usable):
        besides = f" besides {cordoned} that are cordoned" if cordoned else ""
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): only {len(usable)} broker(s) are registered"
            f"{besides}.",
        )


def _by_rack(brokers: list[Broker]) -> list[Broker]:
    """Brokers in an order where neighbours are of different racks as far as possible."""
    racks: dict[str, list[Broker]] = {}
    for broker in sorted(brokers, key=lambda broker: broker.id):
        racks.setdefault(broker.rack or "", []).append(broker)
    ring: list[Broker] = []
    rows = [racks[rack] for rack in sorted(racks)]
    for at in range(max(map(len, rows))):
        ring += [row[at] for row in rows if at < len(row)]
    return ring


def _replicas(ring: Sequence[Broker], leader_at: int, turn: int, factor: int) -> list[int]:
    """The leader, then its neighbours, shifted by one more with each round so that followers change partners."""
    others = [ring[(leader_at + step) % len(ring)] for step in range(1, len(ring))]
    racks = {ring[leader_at].rack}
    shift = turn % max(1, len(others))
    order = others[shift:] + others[:shift]
    chosen = [ring[leader_at].id]
    for fresh_rack in (True, False):
        for broker in order:
            if len(chosen) < factor and broker.id not in chosen and (not fresh_rack or broker.rack not in racks):
                chosen.append(broker.id)
                racks.add(broker.rack)
    return chosen


def new_partition(image: Image, replicas: Sequence[int]) -> Partition:
    """A partition as it begins: in sync on every active replica, led by the first of them."""
    isr = tuple(broker for broker in replicas if image.brokers[broker].active)
    assert isr, "the caller has seen to it that one replica is active"
    directories = tuple(only_directory(image.brokers[broker]) for broker in replicas)
    return Partition(
        replicas=tuple(replicas), isr=isr, leader=isr[0], leader_epoch=0, partition_epoch=0, directories=directories
    )


def check_assignment(
    image: Image, partition: int, replicas: Sequence[int], factor: int | None, held: Sequence[int] = ()
) -> None:
    """A placement that a client has written itself. INVALID_REPLICA_ASSIGNMENT where it cannot stand. `held`: by whom
    the partition is held already."""
    fault = None
    unknown = [broker for broker in replicas if broker not in image.brokers]
    cordoned = [one for one in replicas if one not in unknown and one not in held and image.brokers[one].cordoned]
    if not replicas:
        fault = f"the assignment of partition {partition} has no replicas."
    elif unknown:
        fault = f"the assignment of partition {partition} names broker {unknown[0]}, which is not registered."
    elif len(set(replicas)) < len(replicas):
        fault = f"the assignment of partition {partition} names a broker more than once."
    elif cordoned:
        fault = f"the assignment of partition {partition} names broker {cordoned[0]}, which is cordoned."
    elif factor is not None and len(replicas) != factor:
        fault = f"the assignment of partition {partition} has {len(replicas)} replica(s), others have {factor}."
    elif not any(image.brokers[broker].active for broker in replicas):
        fault = f"all brokers in the assignment of partition {partition} are fenced or shutting down."
    if fault is not None:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment is invalid: {fault}")
