"""A cordoned broker keeps what it has and gets nothing new (KIP-1066)."""

from __future__ import annotations

import pytest

from penstock.base.configs.broker import BROKER_CONFIGS
from penstock.base.configs.define import ResourceType
from penstock.base.configs.values import parse
from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.controller.balance import Limits, decide_balance
from penstock.core.controller.brokers import decide_register_broker
from penstock.core.controller.configs import decide_incremental_alter_configs
from penstock.core.controller.cordons import cordons_path, strange_paths, untold
from penstock.core.controller.heartbeats import Heartbeats
from penstock.core.controller.internal_topics import internal_topic
from penstock.core.controller.placement import check_assignment, place
from penstock.core.controller.reassignments import decide_alter_reassignments
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import Image
from penstock.protocol.generated.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.protocol.generated.broker_heartbeat_request import BrokerHeartbeatRequest
from penstock.protocol.generated.broker_registration_change_record import BrokerRegistrationChangeRecord
from penstock.protocol.generated.broker_registration_request import BrokerRegistrationRequest, Feature
from penstock.protocol.generated.config_record import ConfigRecord
from penstock.protocol.generated.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.unit.core.controller.moves import NODE, cluster, directory, orders, partition, replayed

PLENTY = Limits(moves=10, bytes_a_round=10**12, leaders=10)


def cordoned(image: Image, *brokers: int) -> Image:
    return replayed(
        image,
        [
            BrokerRegistrationChangeRecord(broker_id=one, broker_epoch=10 + one, cordoned_log_dirs=[directory(one)])
            for one in brokers
        ],
    )


def beat(image: Image, broker: int, cordon: list[bytes] | None, **more: object) -> Image:
    """The image after one heartbeat that tells of a cordon."""
    beats = Heartbeats(image, 0, session_timeout_ms=9_000, reconnect_ms=500)
    request = BrokerHeartbeatRequest(
        broker_id=broker, broker_epoch=10 + broker, current_metadata_offset=1_000, cordoned_log_dirs=cordon, **more
    )
    beats.touch(image, request, 0)
    if not beats.wants_change(image, request):
        return image
    return replayed(image, beats.decide(image, NODE, request, end_offset=500).records)


def reassign(image: Image, *replicas: int) -> tuple[int, str | None]:
    one = ReassignablePartition(partition_index=0, replicas=list(replicas))
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="orders", partitions=[one])])
    answer = decide_alter_reassignments(image, NODE, request).response.responses[0].partitions[0]
    return answer.error_code, answer.error_message


def test_a_heartbeat_tells_of_a_cordon_and_of_its_end():
    image = beat(cluster(), 3, [directory(3)])
    assert [one.id for one in image.brokers.values() if one.cordoned] == [3]
    assert beat(image, 3, [directory(3)]) is image  # known already
    assert beat(image, 3, None) is image  # no news
    assert not beat(image, 3, []).brokers[3].cordoned


def test_a_broker_that_comes_back_is_cordoned_in_the_moment_in_which_it_is_unfenced():
    image = beat(cluster(alive=(1, 2)), 3, [directory(3)])
    assert (image.brokers[3].fenced, image.brokers[3].cordoned) == (False, True)


@pytest.mark.parametrize(("held", "stays"), [(3, True), (9, False)], ids=["same directory", "another directory"])
def test_a_broker_that_registers_anew_is_cordoned_until_it_tells_otherwise(held: int, stays: bool):
    before = cordoned(cluster(), 3)
    features = [Feature(name=name, max_supported_version=level) for name, level in before.features.items()]
    request = BrokerRegistrationRequest(
        broker_id=3, cluster_id="c", incarnation_id=b"n" * 16, log_dirs=[directory(held)], features=features
    )
    result = decide_register_broker(before, NODE, request, cluster_id="c", next_offset=99)
    assert result.response.error_code == ErrorCode.NONE
    image = replayed(before, result.records)
    assert (image.brokers[3].fenced, image.brokers[3].cordoned) == (True, stays)


def test_directories_that_are_not_the_brokers_own_do_not_count():
    image = cluster()
    assert beat(image, 3, [directory(4)]) is image


def test_metadata_of_an_older_version_cannot_say_it():
    image = cluster(level=29)
    assert beat(image, 3, [directory(3)]) is image
    assert untold(image, image.brokers[3], [directory(3)]) is None


def test_new_partitions_go_elsewhere(random):
    placed = place(cordoned(cluster(), 2), 6, 3, random)
    assert {broker for replicas in placed for broker in replicas} == {1, 3, 4}


def test_too_few_brokers_are_left_for_the_copies(random):
    with pytest.raises(KafkaError, match=r"only 2 broker\(s\) are registered besides 2 that are cordoned") as refused:
        place(cordoned(cluster(), 2, 3), 1, 3, random)
    assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
    with pytest.raises(KafkaError, match=r"all brokers are fenced, shutting down or cordoned \(4\)"):
        place(cordoned(cluster(), 1, 2, 3, 4), 1, 1, random)


def test_a_placement_by_hand_may_not_name_it():
    with pytest.raises(KafkaError, match="names broker 2, which is cordoned") as refused:
        check_assignment(cordoned(cluster(), 2), 0, [1, 2], None)
    assert refused.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_partition_may_stay_and_leave_but_not_come():
    image = cordoned(cluster(partition([1, 2, 3])), 2, 4)
    assert reassign(image, 2, 1, 3)[0] == ErrorCode.NONE
    assert reassign(image, 1, 3)[0] == ErrorCode.NONE
    code, text = reassign(image, 1, 3, 4)
    assert code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert text is not None and "names broker 4, which is cordoned" in text


def test_internal_topics_have_no_more_copies_than_there_are_brokers_for_them():
    image = cordoned(cluster(), 1, 2)
    assert internal_topic(image, NODE, "__consumer_offsets").replication_factor == 2


def test_the_balancer_gives_it_nothing_and_takes_nothing():
    even = [partition([1, 2]), partition([2, 3]), partition([3, 1])] * 4
    assert decide_balance(cluster(*even), NODE, {}, PLENTY).records, "an empty broker would get its share"
    assert decide_balance(cordoned(cluster(*even), 4), NODE, {}, PLENTY).records == []
    full = cordoned(cluster(*[partition([4, 1 + index % 3]) for index in range(9)]), 4)
    after = replayed(full, decide_balance(full, NODE, {}, PLENTY).records)
    assert all(4 in orders(after, index).replicas for index in range(9))


def test_the_balancer_goes_on_among_the_others_where_a_copy_is_on_a_cordoned_broker():
    image = cordoned(cluster(*[partition([1, 4]) for _ in range(12)]), 4)
    moved = decide_balance(image, NODE, {}, PLENTY).records
    assert moved and all(4 in record.replicas for record in moved)
    assert {one for record in moved for one in record.replicas} == {1, 2, 3, 4}


@pytest.mark.parametrize(
    ("value", "own"),
    [("*", True), ("/data/1", True), ("", False), ("/data/2", False)],
    ids=["all", "own", "none", "other"],
)
def test_what_the_configuration_names(value: str, own: bool):
    node = Node(3, {"cordoned.log.dirs": value})
    assert cordons_path(cluster(), node, "/data/1") is own
    dynamic = replayed(
        cluster(),
        [ConfigRecord(resource_type=ResourceType.BROKER, resource_name="3", name="cordoned.log.dirs", value=value)],
    )
    assert cordons_path(dynamic, Node(3, {"cordoned.log.dirs": "*"}), "/data/1") is own
    assert strange_paths(dynamic, Node(3, {}), "/data/1") == (["/data/2"] if value == "/data/2" else [])


def test_a_star_stands_alone():
    with pytest.raises(ValueError, match="stands alone"):
        parse(BROKER_CONFIGS["cordoned.log.dirs"], "*,/data/1")


@pytest.mark.parametrize(
    ("level", "owner", "value", "code"),
    [
        (30, "3", "*", ErrorCode.NONE),
        (30, "3", "*,/data", ErrorCode.INVALID_REQUEST),
        (30, "", "*", ErrorCode.INVALID_REQUEST),
        (29, "3", "*", ErrorCode.INVALID_CONFIG),
    ],
    ids=["one broker", "star and more", "all brokers", "too old"],
)
def test_a_broker_is_cordoned_by_its_configuration(level: int, owner: str, value: str, code: ErrorCode):
    config = AlterableConfig(name="cordoned.log.dirs", config_operation=0, value=value)
    asked = AlterConfigsResource(resource_type=ResourceType.BROKER, resource_name=owner, configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[asked])
    assert (
        decide_incremental_alter_configs(cluster(level=level), NODE, request).response.responses[0].error_code == code
    )
