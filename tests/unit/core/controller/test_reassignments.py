"""Partitions that move from broker to broker: the way there, the way back, and what is refused."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode
from penstock.core.controller.reassignments import decide_alter_reassignments, list_reassignments
from penstock.protocol.generated.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.protocol.generated.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.unit.core.controller.moves import NODE, UNCLEAN, cluster, orders, partition, replayed

THREE = partition([1, 2, 3])


def reassigned(image, replicas, *, index=0, name="orders", node=NODE, may_change_factor=True):
    asked = ReassignableTopic(name=name, partitions=[ReassignablePartition(partition_index=index, replicas=replicas)])
    request = AlterPartitionReassignmentsRequest(topics=[asked], allow_replication_factor_change=may_change_factor)
    result = decide_alter_reassignments(image, node, request)
    return result.response.responses[0].partitions[0].error_code, replayed(image, result.records)


def shape(image):
    found = orders(image)
    return found.replicas, found.adding, found.removing


def test_new_replicas_are_added_first():
    code, after = reassigned(cluster(THREE), [1, 2, 4])
    assert (code, shape(after)) == (0, ((1, 2, 4, 3), (4,), (3,)))
    assert (orders(after).leader, orders(after).isr, orders(after).leader_epoch) == (1, (1, 2, 3), 5)


def test_another_order_is_taken_at_once():
    _, after = reassigned(cluster(THREE), [3, 2, 1])
    assert (shape(after), orders(after).leader) == (((3, 2, 1), (), ()), 1)


def test_fewer_replicas_are_taken_at_once_with_a_new_leader_where_needed():
    _, after = reassigned(cluster(THREE), [2, 3])
    assert (shape(after), orders(after).leader, orders(after).isr) == (((2, 3), (), ()), 2, (2, 3))


def test_fewer_replicas_wait_for_one_of_them_to_be_in_sync():
    _, after = reassigned(cluster(partition([1, 2, 3], [1, 2])), [3])
    assert shape(after) == ((3, 1, 2), (), (1, 2))


def test_a_move_can_be_changed_while_it_goes_on():
    _, moving = reassigned(cluster(THREE), [1, 2, 4])
    _, after = reassigned(moving, [4, 1, 2])
    assert shape(after) == ((4, 1, 2, 3), (4,), (3,))


def test_a_move_can_be_called_off():
    _, moving = reassigned(cluster(THREE), [4, 2, 1])
    code, after = reassigned(moving, None)
    assert (code, shape(after), orders(after).leader) == (0, ((2, 1, 3), (), ()), 1)
    assert reassigned(after, None)[0] == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_a_move_whose_old_replicas_are_all_out_of_sync_goes_back_only_uncleanly():
    image = cluster(partition([4, 1, 2], [4], adding=[4], removing=[1, 2]))
    code, after = reassigned(image, None)
    assert (code, orders(after)) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, orders(image))
    code, after = reassigned(image, None, node=UNCLEAN)
    assert (code, orders(after).leader, orders(after).isr) == (0, 1, (1,))
    assert orders(after).leader_recovery_state == 1


@pytest.mark.parametrize(
    ("alive", "elr", "leader", "isr", "last_known"),
    [
        ((2, 4), True, 2, (2,), ()),
        ((4,), True, -1, (), (1,)),
        ((2, 4), False, 2, (2,), ()),
        ((4,), False, -1, (1,), ()),
    ],
)
def test_a_move_taken_back_uncleanly_is_led_by_whoever_is_alive(alive, elr, leader, isr, last_known):
    moving = partition([4, 1, 2], [4], adding=[4], removing=[1, 2])
    _, after = reassigned(cluster(moving, alive=alive, elr=elr), None, node=UNCLEAN)
    found = orders(after)
    assert (found.leader, found.isr, found.last_known_eligible, found.replicas) == (leader, isr, last_known, (1, 2))


@pytest.mark.parametrize(
    ("replicas", "more", "code"),
    [
        ([1, 2, 9], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 2], {"may_change_factor": False}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ([1], {"name": "nope"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ([1], {"index": 3}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, {}, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_a_move_that_cannot_be_is_refused(replicas, more, code):
    image = cluster(THREE)
    assert reassigned(image, replicas, **more) == (code, image)


def listed(image, topics=None):
    found = list_reassignments(image, ListPartitionReassignmentsRequest(topics=topics))
    return [
        (topic.name, one.partition_index, one.replicas, one.adding_replicas, one.removing_replicas)
        for topic in found.topics
        for one in topic.partitions
    ]


def test_what_is_on_its_way_is_listed():
    _, moving = reassigned(cluster(THREE, THREE), [1, 2, 4], index=1)
    row = ("orders", 1, [1, 2, 4, 3], [4], [3])
    assert listed(moving) == [row]
    asked = ListPartitionReassignmentsTopics(name="orders", partition_indexes=[0, 1, 9])
    assert listed(moving, [asked]) == [row]
    assert listed(moving, [ListPartitionReassignmentsTopics(name="nope", partition_indexes=[0])]) == []
