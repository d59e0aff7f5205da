"""AssignReplicasToDirs: replicas and the disks they lie on."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode
from penstock.core.controller.directories import decide_assign_directories
from penstock.protocol.generated.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from tests.unit.core.controller.moves import NODE, ORDERS, cluster, directory, orders, partition, replayed

UNKNOWN = bytes(15) + b"\x01"


def asked(where: bytes, *, broker=2, epoch=12, topic=ORDERS, index=0) -> AssignReplicasToDirsRequest:
    of_topic = TopicData(topic_id=topic, partitions=[PartitionData(partition_index=index)])
    directories = [DirectoryData(id=where, topics=[of_topic])]
    return AssignReplicasToDirsRequest(broker_id=broker, broker_epoch=epoch, directories=directories)


def unplaced():
    return partition([1, 2, 3], leader=2)._replace(directories=(directory(1), UNKNOWN, directory(3)))


def assigned(image, request):
    result = decide_assign_directories(image, NODE, request)
    assert result.response.error_code == 0
    return result.response.directories[0].topics[0].partitions[0].error_code, replayed(image, result.records)


def test_a_replica_is_placed():
    code, after = assigned(cluster(unplaced()), asked(directory(2)))
    assert (code, orders(after).directories, orders(after).leader) == (0, tuple(map(directory, (1, 2, 3))), 2)


def test_a_replica_on_a_lost_disk_is_led_by_others():
    code, after = assigned(cluster(unplaced()), asked(b"?" * 16))
    assert (code, orders(after).leader, orders(after).isr) == (0, 1, (1, 3))


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (asked(directory(2), topic=b"?" * 16), ErrorCode.UNKNOWN_TOPIC_ID),
        (asked(directory(2), index=8), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (asked(directory(4), broker=4, epoch=14), ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_what_is_not_there_is_told(request_, code):
    image = cluster(unplaced())
    assert assigned(image, request_) == (code, image)


def test_only_the_present_incarnation_of_a_broker_places_replicas():
    result = decide_assign_directories(cluster(unplaced()), NODE, asked(directory(2), epoch=11))
    assert (result.response.error_code, result.records) == (ErrorCode.STALE_BROKER_EPOCH, [])
    old = decide_assign_directories(cluster(elr=False, level=16), NODE, asked(directory(2)))
    assert old.response.error_code == ErrorCode.UNSUPPORTED_VERSION
