"""What a broker's configuration bounds, seen by a client of a broker that runs in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.base.errors import ErrorCode
from penstock.broker.config import BrokerConfig, ConfigFault
from penstock.broker.embedded import Embedded, single_node
from penstock.protocol.generated.describe_topic_partitions_request import DescribeTopicPartitionsRequest, TopicRequest
from penstock.protocol.generated.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.generated.fetch_response import FetchResponse
from penstock.protocol.generated.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from tests.bad_input.bad_batches import packed
from tests.bad_input.raw_client import RawClient, create_topic, produce

LIMITS = {
    "fetch.max.bytes": "1024",
    "max.request.partition.size.limit": "3",
    "max.incremental.fetch.session.cache.slots": "0",
    "telemetry.max.bytes": "77",
}
PARTITIONS = 4


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    broker = Embedded(LIMITS, str(tmp_path_factory.mktemp("data")))
    host, _, port = broker.start().rpartition(":")
    with RawClient((host, int(port))) as client:
        assert create_topic(client, "orders", PARTITIONS) == 0
        yield client
    broker.stop()


def fetch(client: RawClient, *, session_epoch: int = -1) -> FetchResponse:
    places = [FetchPartition(partition=at, fetch_offset=0, partition_max_bytes=10_000) for at in range(PARTITIONS)]
    topics = [FetchTopic(topic="orders", partitions=places)]
    request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=50_000_000, session_epoch=session_epoch, topics=topics)
    answer: FetchResponse = client.call(request, 12)
    return answer


def test_fetch_max_bytes_bounds_an_answer_that_asks_for_more(client: RawClient):
    for index in range(PARTITIONS):
        assert produce(client, "orders", packed(bytes(700)), partition=index).error_code == 0
    sizes = [len(one.records or b"") for one in fetch(client).responses[0].partitions]
    assert 0 < sum(sizes) <= 1024


def test_without_session_slots_every_fetch_stands_alone(client: RawClient):
    assert fetch(client, session_epoch=0).session_id == 0


def test_a_page_of_topic_partitions_is_as_long_as_configured(client: RawClient):
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="orders")], response_partition_limit=2000)
    answer = client.call(request, 0)
    assert len(answer.topics[0].partitions) == 3
    assert answer.next_cursor.partition_index == 3


def test_clients_are_told_how_much_telemetry_they_may_push(client: RawClient):
    assert client.call(GetTelemetrySubscriptionsRequest(), 0).telemetry_max_bytes == 77


def test_records_are_checked_one_by_one_where_the_topic_asks_for_it(client: RawClient):
    nonsense = packed(b"\x7f" * 40)
    assert create_topic(client, "trusting") == 0
    assert create_topic(client, "checking", penstock_check_records="true") == 0
    assert produce(client, "trusting", nonsense).error_code == 0
    assert produce(client, "checking", nonsense).error_code == ErrorCode.INVALID_RECORD


def test_a_broker_that_cannot_authorize_does_not_pretend_to(tmp_path: Path):
    authorizer = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    with pytest.raises(ConfigFault, match=r"authorizer\.class\.name"):
        BrokerConfig(single_node(str(tmp_path)) | authorizer)


def test_a_metadata_log_elsewhere_is_refused_rather_than_overlooked(tmp_path: Path):
    config = BrokerConfig({**single_node(str(tmp_path / "data")), "metadata.log.dir": str(tmp_path / "elsewhere")})
    with pytest.raises(ConfigFault, match=r"metadata\.log\.dir"):
        _ = config.log_dir
