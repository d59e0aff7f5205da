"""ElectLeaders, and the elections that the controller holds by itself."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode
from penstock.core.controller.leaders import decide_elect_leaders, decide_preferred_leaders, decide_unclean_leaders
from penstock.protocol.generated.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from tests.unit.core.controller.moves import NODE, UNCLEAN, cluster, orders, partition, replayed

PREFERRED_TYPE, UNCLEAN_TYPE = 0, 1
MOVED = partition([1, 2, 3], leader=2)
HOME = partition([1, 2, 3])
GONE = partition([1, 2, 3], [], eligible=[1], last_known_eligible=[1])


def elected(image, kind=PREFERRED_TYPE, partitions=(0,), node=NODE):
    asked = None if partitions is None else [TopicPartitions(topic="orders", partitions=list(partitions))]
    result = decide_elect_leaders(image, node, ElectLeadersRequest(election_type=kind, topic_partitions=asked))
    found = [
        (one.topic, p.partition_id, p.error_code)
        for one in result.response.replica_election_results
        for p in one.partition_result
    ]
    return found, replayed(image, result.records)


def test_the_preferred_leader_takes_over():
    found, after = elected(cluster(MOVED))
    assert (found, orders(after).leader) == ([("orders", 0, 0)], 1)


@pytest.mark.parametrize(
    ("described", "alive", "kind", "code"),
    [
        (HOME, (1, 2, 3), PREFERRED_TYPE, ErrorCode.ELECTION_NOT_NEEDED),
        (MOVED, (2, 3), PREFERRED_TYPE, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (MOVED, (2, 3), UNCLEAN_TYPE, ErrorCode.ELECTION_NOT_NEEDED),
        (GONE, (), UNCLEAN_TYPE, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ],
)
def test_an_election_that_changes_nothing_says_why(described, alive, kind, code):
    image = cluster(described, alive=alive)
    found, after = elected(image, kind)
    assert (found, orders(after)) == ([("orders", 0, code)], orders(image))


def test_an_unclean_election_on_request_needs_no_leave_of_the_topic():
    found, after = elected(cluster(GONE, alive=(2,)), UNCLEAN_TYPE)
    assert (found, orders(after).leader) == ([("orders", 0, 0)], 2)


def test_a_partition_that_is_not_there_is_unknown():
    found, _ = elected(cluster(MOVED), partitions=(7,))
    assert found == [("orders", 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


def test_asked_for_all_only_those_are_told_that_needed_an_election():
    found, after = elected(cluster(HOME, MOVED), partitions=None)
    assert (found, orders(after, 1).leader) == ([("orders", 1, 0)], 1)


def test_an_unknown_kind_of_election_is_refused():
    result = decide_elect_leaders(cluster(MOVED), NODE, ElectLeadersRequest(election_type=7, topic_partitions=None))
    assert (result.response.error_code, result.records) == (ErrorCode.INVALID_REQUEST, [])


def test_leaders_are_given_back_where_the_first_replica_is_in_sync_and_not_too_many_at_once():
    image = cluster(MOVED, HOME, partition([1, 2], [2]), MOVED, MOVED)
    assert [one.partition_id for one in decide_preferred_leaders(image, NODE, 10)] == [0, 3, 4]
    assert [one.partition_id for one in decide_preferred_leaders(image, NODE, 2)] == [0, 3]


def test_partitions_that_nobody_leads_are_led_uncleanly_where_that_is_allowed():
    image = cluster(GONE, MOVED, GONE, alive=(2, 3))
    assert decide_unclean_leaders(image, NODE, 10) == []
    assert [one.partition_id for one in decide_unclean_leaders(image, UNCLEAN, 10)] == [0, 2]
    assert [one.partition_id for one in decide_unclean_leaders(image, UNCLEAN, 1)] == [0]
