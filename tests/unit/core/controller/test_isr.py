"""AlterPartition: what a leader may change of its ISR, and what it is told."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode
from penstock.core.controller.isr import decide_alter_partition
from penstock.protocol.generated.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from penstock.protocol.generated.broker_registration_change_record import BrokerRegistrationChangeRecord
from tests.unit.core.controller.moves import NODE, ORDERS, cluster, orders, partition, replayed


def asked(isr, *, broker=1, epoch=11, topic=ORDERS, index=0, leader_epoch=5, partition_epoch=9, state=0, epochs=None):
    states = [BrokerState(broker_id=one, broker_epoch=(epochs or {}).get(one, 10 + one)) for one in isr]
    data = PartitionData(
        partition_index=index,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        new_isr_with_epochs=states,
        leader_recovery_state=state,
    )
    return AlterPartitionRequest(
        broker_id=broker, broker_epoch=epoch, topics=[TopicData(topic_id=topic, partitions=[data])]
    )


def answered(image, request):
    result = decide_alter_partition(image, NODE, request)
    assert not result.response.error_code
    return result.response.topics[0].partitions[0], result.records


THREE = partition([1, 2, 3], [1, 2])


def test_a_leader_grows_its_isr_and_is_told_the_new_epoch():
    image = cluster(THREE)
    answer, records = answered(image, asked([1, 2, 3]))
    found = orders(replayed(image, records))
    assert found.isr == (1, 2, 3)
    assert (answer.error_code, answer.isr, answer.leader_id) == (0, [1, 2, 3], 1)
    assert (answer.leader_epoch, answer.partition_epoch) == (found.leader_epoch, found.partition_epoch) == (5, 10)


def test_version_2_names_brokers_without_epochs():
    request = asked([])
    request.topics[0].partitions[0].new_isr = [1, 2, 3]
    answer, _ = answered(cluster(THREE), request)
    assert (answer.error_code, answer.isr) == (0, [1, 2, 3])


def test_an_isr_that_stays_is_confirmed_without_a_record():
    answer, records = answered(cluster(THREE), asked([1, 2]))
    assert (answer.error_code, answer.partition_epoch, records) == (0, 9, [])


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (asked([1, 2, 3], topic=b"?" * 16), ErrorCode.UNKNOWN_TOPIC_ID),
        (asked([1, 2, 3], index=7), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (asked([1, 2, 3], leader_epoch=6), ErrorCode.NOT_CONTROLLER),
        (asked([1, 2, 3], partition_epoch=10), ErrorCode.NOT_CONTROLLER),
        (asked([1, 2, 3], leader_epoch=4), ErrorCode.FENCED_LEADER_EPOCH),
        (asked([1, 2, 3], broker=2, epoch=12), ErrorCode.INVALID_REQUEST),
        (asked([1, 2, 3], partition_epoch=8), ErrorCode.INVALID_UPDATE_VERSION),
        (asked([1, 4]), ErrorCode.INVALID_REQUEST),
        (asked([1, 1, 2]), ErrorCode.INVALID_REQUEST),
        (asked([2, 3]), ErrorCode.INVALID_REQUEST),
        (asked([1], state=1), ErrorCode.INVALID_REQUEST),
        (asked([1, 2, 3], epochs={3: 12}), ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_a_change_that_may_not_be_is_refused(request_, code):
    answer, records = answered(cluster(THREE), request_)
    assert (answer.error_code, records) == (code, [])


def test_an_epoch_that_the_leader_does_not_know_is_not_checked():
    answer, _ = answered(cluster(THREE), asked([1, 2, 3], epochs={3: -1}))
    assert answer.error_code == 0


def test_a_recovering_leader_is_alone():
    shaky = partition([1, 2, 3], [1], leader_recovery_state=1)
    refused, _ = answered(cluster(shaky), asked([1, 2], state=1))
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    done, records = answered(cluster(shaky), asked([1, 2], state=0))
    assert (done.error_code, done.leader_recovery_state, len(records)) == (0, 0, 1)


@pytest.mark.parametrize("change", [{"fenced": 1}, {"in_controlled_shutdown": 1}])
def test_a_replica_that_is_about_to_go_is_not_taken_in(change):
    image = cluster(THREE)
    image = replayed(image, [BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=13, **change)])
    answer, records = answered(image, asked([1, 2, 3]))
    assert (answer.error_code, records) == (ErrorCode.INELIGIBLE_REPLICA, [])


@pytest.mark.parametrize(
    ("broker", "epoch", "code"), [(1, 10, ErrorCode.STALE_BROKER_EPOCH), (9, 19, ErrorCode.BROKER_ID_NOT_REGISTERED)]
)
def test_only_the_present_incarnation_is_heard(broker, epoch, code):
    result = decide_alter_partition(cluster(THREE), NODE, asked([1, 2, 3], broker=broker, epoch=epoch))
    assert (result.response.error_code, result.records) == (code, [])


def test_a_change_that_takes_the_leader_away_says_so_and_is_done():
    image = cluster(partition([4, 2, 1], [1, 2], leader=1, adding=[4], removing=[1]))
    answer, records = answered(image, asked([1, 2, 4]))
    assert answer.error_code == ErrorCode.NEW_LEADER_ELECTED
    assert orders(replayed(image, records)).leader == 4


def test_one_refused_partition_leaves_the_others_alone():
    image = cluster(THREE, THREE)
    request = asked([1, 2, 3], leader_epoch=4)
    request.topics[0].partitions += asked([1, 2, 3], index=1).topics[0].partitions
    result = decide_alter_partition(image, NODE, request)
    codes = [one.error_code for one in result.response.topics[0].partitions]
    assert (codes, len(result.records)) == ([ErrorCode.FENCED_LEADER_EPOCH, 0], 1)
