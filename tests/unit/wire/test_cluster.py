from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.protocol.generated.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.wire.cluster import METADATA_MAX_AGE_MS, Cluster
from penstock.wire.retries import BACKOFF

ID = b"i" * 16
OTHER_ID = b"j" * 16


def metadata(leader: int = 1, epoch: int = 5, topic_id: bytes = ID, error: int = 0) -> MetadataResponse:
    partitions = [MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch)]
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=n, host=f"host{n}", port=9000 + n) for n in (1, 2)],
        cluster_id="c",
        topics=[
            MetadataResponseTopic(name="t", topic_id=topic_id, error_code=error, partitions=[] if error else partitions)
        ],
    )


def cluster() -> Cluster:
    return Cluster([("seed", 9092)])


T0 = TopicPartition("t", 0)


def test_metadata_tells_leaders_names_ids_and_addresses() -> None:
    known = cluster()
    known.learn(metadata(), 0)
    assert known.leader(T0) == 1
    assert known.topic_id("t") == ID
    assert known.names == {ID: "t"}
    address = known.address(2)
    assert address is not None
    assert (address.host, address.port) == ("host2", 9002)
    known.check()


def test_an_older_leader_epoch_of_the_same_topic_is_ignored() -> None:
    known = cluster()
    known.learn(metadata(leader=2, epoch=6), 0)
    known.learn(metadata(leader=1, epoch=5), 1)
    assert known.leader(T0) == 2


def test_a_topic_made_anew_starts_from_its_own_epochs() -> None:
    known = cluster()
    known.learn(metadata(leader=2, epoch=6), 0)
    known.learn(metadata(leader=1, epoch=0, topic_id=OTHER_ID), 1)
    assert known.leader(T0) == 1
    assert known.names == {OTHER_ID: "t"}


def test_a_refused_topic_is_forgotten_with_its_id_and_soon_asked_about_again() -> None:
    known = cluster()
    known.want(["t"])
    known.learn(metadata(), 0)
    known.learn(metadata(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), 1)
    assert known.topics == {}
    assert known.names == {}
    assert known.refused == {"t": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert not known.is_stale(1_000)
    assert known.is_stale(1_001)


def test_no_leader_means_no_node() -> None:
    known = cluster()
    known.learn(metadata(leader=-1), 0)
    assert known.leader(T0) is None


def test_a_hint_about_a_newer_leader_is_believed_and_an_old_one_is_not() -> None:
    known = cluster()
    known.learn(metadata(leader=1, epoch=5), 0)
    known.learn_leader(T0, 2, 4)
    assert known.leader(T0) == 1
    known.learn_leader(T0, 2, 6)
    assert known.leader(T0) == 2


def test_metadata_grows_stale_with_age_by_an_error_and_by_a_new_topic() -> None:
    known = cluster()
    assert known.is_stale(0)
    known.learn(metadata(), 0)
    assert not known.is_stale(METADATA_MAX_AGE_MS - 1)
    assert known.is_stale(METADATA_MAX_AGE_MS)
    known.want(["t"])
    assert not known.is_stale(0)
    known.want(["u"])
    assert known.is_stale(0)


def test_any_node_is_the_least_loaded_connection_or_the_address_that_failed_longest_ago() -> None:
    known = cluster()
    assert known.any_node({}) == -1
    known.learn(metadata(), 0)
    assert known.any_node({1: 3, 2: 1}) == 2
    assert known.any_node({}) == 1
    known.unreachable(1, 10)
    assert known.any_node({}) == 2
    known.unreachable(2, 20)
    assert known.any_node({}) == -1
    known.unreachable(-1, 30)
    assert known.any_node({}) == 1
    known.reached(2)
    assert known.any_node({}) == 2


def test_a_broker_that_was_silent_is_not_asked_under_another_name() -> None:
    """The one that we began with is connected by its address, and again by its id."""
    known = Cluster([("host1", 9001)])
    known.learn(metadata(), 0)
    assert known.any_node({-1: 0, 2: 5}) == -1
    known.unreachable(1, 10)
    assert known.any_node({-1: 0, 2: 5}) == 2
    assert known.any_node({-1: 0}) == 2, "another is connected to first"
    known.reached(1)
    assert known.any_node({-1: 0, 2: 5}) == -1


def test_a_connection_to_a_node_that_the_metadata_no_longer_names_is_not_any_node() -> None:
    """It was fenced when the last answer came, and its address went with it: asked for ever, nothing would be heard."""
    known = cluster()
    known.learn(metadata(), 0)
    known.learn(MetadataResponse(brokers=[MetadataResponseBroker(node_id=2, host="host2", port=9002)]), 1)
    assert known.any_node({1: 0}) == 2
    assert known.any_node({1: 0, -1: 3}) == -1


def test_a_retry_says_when_and_what_to_ask_first() -> None:
    moved = BACKOFF.decide(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER), 0)
    assert moved is not None
    assert (moved.after_ms, moved.refresh_metadata, moved.find_coordinator) == (100, True, False)
    other = BACKOFF.decide(KafkaError(ErrorCode.NOT_COORDINATOR), 2)
    assert other is not None
    assert (other.after_ms, other.refresh_metadata, other.find_coordinator) == (400, False, True)
    assert BACKOFF.decide(KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED), 0) is None


def test_the_pause_between_tries_doubles_up_to_its_limit() -> None:
    assert [BACKOFF.after_ms(n) for n in range(6)] == [100, 200, 400, 800, 1000, 1000]
