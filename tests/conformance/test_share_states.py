"""What a share coordinator keeps, as brokers ask for it over the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.base.errors import ErrorCode
from penstock.base.ids import id_text
from penstock.broker.share_messages import (
    delete_request,
    initialize_request,
    read_request,
    summary_request,
    write_request,
)
from penstock.core.share.batches import StateBatch
from penstock.core.share.requests import Delete, Initialize, Read, ShareKey, Summarize, Write
from penstock.protocol.generated.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.generated.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.message import Message
from penstock.testing import Cluster
from tests.bad_input.raw_client import RawClient

SHARE = 2
UNKNOWN_TOPIC = bytes(15) + b"\x09"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


def client_of(cluster: Cluster) -> RawClient:
    host, _, port = cluster.bootstrap_servers.rpartition(":")
    return RawClient((host, int(port)))


def only(client: RawClient, request: Message, version: int = 0) -> Any:
    [topic] = client.call(request, version).results
    [partition] = topic.partitions
    return partition


def create_topic(client: RawClient, name: str) -> bytes:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    topic_id: bytes = client.call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7).topics[0].topic_id
    return topic_id


def begun(client: RawClient, name: str) -> ShareKey:
    """A group that has begun a new topic's partition 0 at offset 5."""
    key = ShareKey("group:with-colons", create_topic(client, name), 0)
    find(client, str(key))
    done = loaded(client, initialize_request(Initialize(key, 1, 5)))
    assert done.error_code == 0, done
    return key


def find(client: RawClient, key: str) -> Any:
    [found] = client.call(FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key]), 6).coordinators
    return found


def test_state_survives_a_restart(cluster: Cluster):
    with client_of(cluster) as client:
        key = begun(client, "restart")
        write = Write(key, 1, 3, 7, 4, (StateBatch(8, 11, 2, 1),))
        assert only(client, write_request(write), 1).error_code == 0
    cluster.restart()
    with client_of(cluster) as client:
        found = loaded(client, read_request(Read(key, 4)))
        assert (found.state_epoch, found.start_offset) == (1, 7)
        assert [(one.first_offset, one.last_offset) for one in found.state_batches] == [(8, 11)]
        summary = only(client, summary_request(Summarize(key, -1)), 1)
        assert (summary.leader_epoch, summary.start_offset, summary.delivery_complete_count) == (4, 7, 4)


def loaded(client: RawClient, request: Message) -> Any:
    """The answer, once the coordinator is there."""
    while True:
        answer = only(client, request)
        if answer.error_code not in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR):
            return answer


def test_a_deleted_state_is_gone(cluster: Cluster):
    with client_of(cluster) as client:
        key = begun(client, "deleted")
        assert only(client, delete_request(Delete(key))).error_code == 0
        assert only(client, summary_request(Summarize(key, -1)), 1).start_offset == -1
        assert only(client, read_request(Read(key, 0))).error_code == ErrorCode.INVALID_REQUEST


REFUSED: list[tuple[str, Callable[[ShareKey], Message], ErrorCode]] = [
    ("stale-state-epoch", lambda key: write_request(Write(key, 0, 9, -1, 0, ())), ErrorCode.FENCED_STATE_EPOCH),
    ("stale-leader-epoch", lambda key: write_request(Write(key, 1, 2, -1, 0, ())), ErrorCode.FENCED_LEADER_EPOCH),
    ("stale-leader-reads", lambda key: read_request(Read(key, 2)), ErrorCode.FENCED_LEADER_EPOCH),
    (
        "batch-backwards",
        lambda key: write_request(Write(key, 1, 3, -1, 0, (StateBatch(9, 8, 2, 1),))),
        ErrorCode.INVALID_REQUEST,
    ),
    (
        "no-such-topic",
        lambda key: initialize_request(Initialize(key._replace(topic_id=UNKNOWN_TOPIC), 1, 0)),
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    (
        "no-such-partition",
        lambda key: delete_request(Delete(key._replace(partition=7))),
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    ("no-topic-id", lambda key: read_request(Read(key._replace(topic_id=bytes(16)), 3)), ErrorCode.INVALID_REQUEST),
    ("below-zero", lambda key: read_request(Read(key._replace(partition=-1), 3)), ErrorCode.INVALID_REQUEST),
    ("not-begun", lambda key: read_request(Read(key._replace(group_id="another"), 3)), ErrorCode.INVALID_REQUEST),
]


@pytest.mark.parametrize(("make", "code"), [pytest.param(*row[1:], id=row[0]) for row in REFUSED])
def test_what_is_refused(cluster: Cluster, topic_name: str, make: Callable[[ShareKey], Message], code: ErrorCode):
    with client_of(cluster) as client:
        key = begun(client, topic_name)
        assert only(client, read_request(Read(key, 3))).error_code == 0
        assert only(client, make(key)).error_code == code


def test_a_group_without_a_name_is_answered_with_nothing(cluster: Cluster):
    with client_of(cluster) as client:
        request = read_request(Read(ShareKey("", UNKNOWN_TOPIC, 0), 0))
        assert client.call(request, 0).results == []


@pytest.mark.parametrize("key", ["g", "g:t:0", f":{id_text(UNKNOWN_TOPIC)}:0", f"g:{id_text(UNKNOWN_TOPIC)}:x", ""])
def test_a_key_that_is_no_share_partition_has_no_coordinator(cluster: Cluster, key: str):
    with client_of(cluster) as client:
        assert find(client, key).error_code == ErrorCode.INVALID_REQUEST


def test_the_coordinator_of_a_share_partition_is_found(cluster: Cluster):
    with client_of(cluster) as client:
        found = find(client, f"a:group:{id_text(UNKNOWN_TOPIC)}:0")
        assert (found.error_code, found.node_id) == (0, 1)
