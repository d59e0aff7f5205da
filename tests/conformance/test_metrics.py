"""/metrics and /health of a real broker, with real clients at work: every figure is the one that the clients made."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request

import pytest
from apache import free_ports
from confluent_kafka import Consumer, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from penstock_up import PenstockUp
from prometheus_client.parser import text_string_to_metric_families

TIMEOUT_S = 15
SENT = (10, 4)
"""records sent to each partition"""
COMMITTED = (6, 4)
VALUE = b"x" * 100


class Broker:
    """A broker of this module's own: its figures are nobody else's doing."""

    def __init__(self, bootstrap: str, admin: str) -> None:
        self.bootstrap = bootstrap
        self._admin = admin

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(self._admin + path, timeout=TIMEOUT_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def scrape(self) -> Scrape:
        status, text = self.get("/metrics")
        assert status == 200
        return Scrape(text)


class Scrape:
    def __init__(self, text: str) -> None:
        self._samples = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                key = (sample.name, frozenset(sample.labels.items()))
                assert key not in self._samples, f"{key} comes twice"
                self._samples[key] = sample.value

    def value(self, name: str, **labels: object) -> float:
        return self._samples[(name, frozenset((label, str(text)) for label, text in labels.items()))]

    def total(self, name: str, **labels: object) -> float:
        """Over all samples that have these labels among theirs."""
        wanted = {(label, str(text)) for label, text in labels.items()}
        return sum(value for (one, has), value in self._samples.items() if one == name and wanted <= has)

    def names(self) -> set[str]:
        return {name for name, _ in self._samples}


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    (port,) = free_ports(1)
    settings = {
        "penstock.admin.listener": f"127.0.0.1:{port}",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "3",
    }
    with PenstockUp(tmp_path_factory.mktemp("metrics"), settings) as up:
        yield Broker(up.bootstrap, f"http://127.0.0.1:{port}")


@pytest.fixture
def topic(broker, topic_name):
    """Two partitions, with what was SENT in them."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic_name, num_partitions=len(SENT))])[topic_name].result(TIMEOUT_S)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for partition, count in enumerate(SENT):
        for _ in range(count):
            producer.produce(topic_name, VALUE, partition=partition)
    assert producer.flush(TIMEOUT_S) == 0
    return topic_name


@pytest.fixture
def group(broker, topic):
    """Its only member has read everything and committed COMMITTED; it stays until the test ends."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"group-of-{topic}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    assert len(consumer.consume(sum(SENT), TIMEOUT_S)) == sum(SENT)
    offsets = [TopicPartition(topic, partition, offset) for partition, offset in enumerate(COMMITTED)]
    consumer.commit(offsets=offsets, asynchronous=False)
    yield consumer
    consumer.close()


def test_what_was_sent_is_what_is_told(broker, topic):
    scrape = broker.scrape()
    assert scrape.value("kafka_server_brokertopicmetrics_messagesin_total", topic=topic) == sum(SENT)
    assert scrape.value("kafka_server_brokertopicmetrics_bytesin_total", topic=topic) > sum(SENT) * len(VALUE)
    assert scrape.value("kafka_topic_partitions", topic=topic) == len(SENT)
    sizes = 0
    for partition, count in enumerate(SENT):
        labels = {"topic": topic, "partition": partition}
        assert scrape.value("kafka_topic_partition_current_offset", **labels) == count
        assert scrape.value("kafka_topic_partition_oldest_offset", **labels) == 0
        assert scrape.value("kafka_topic_partition_leader_is_preferred", **labels) == 1
        assert scrape.value("kafka_cluster_partition_underminisr", **labels) == 0
        sizes += scrape.value("kafka_log_log_size", **labels)
    assert sizes == scrape.value("kafka_server_brokertopicmetrics_bytesin_total", topic=topic)


def test_more_records_move_the_counters_by_their_number(broker, topic):
    before = broker.scrape()
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for _ in range(3):
        producer.produce(topic, VALUE, partition=1)
    assert producer.flush(TIMEOUT_S) == 0
    after = broker.scrape()
    for labels in ({"topic": topic}, {}):
        name = "kafka_server_brokertopicmetrics_messagesin_total"
        assert after.value(name, **labels) - before.value(name, **labels) == 3
    produced = "kafka_network_requestmetrics_requests_total"
    assert 1 <= after.value(produced, request="Produce") - before.value(produced, request="Produce") <= 3


def test_what_is_produced_and_fetched_is_counted_by_topic(broker, topic, group):
    scrape = broker.scrape()
    prefix = "kafka_server_brokertopicmetrics_"
    bytes_in = scrape.value(f"{prefix}bytesin_total", topic=topic)
    assert scrape.value(f"{prefix}bytesout_total", topic=topic) >= bytes_in
    assert len(SENT) <= scrape.value(f"{prefix}totalproducerequests_total", topic=topic) <= sum(SENT)
    assert scrape.value(f"{prefix}totalfetchrequests_total", topic=topic) >= len(SENT)
    assert scrape.value(f"{prefix}failedproducerequests_total", topic=topic) == 0


def test_lag_is_what_was_sent_less_what_was_committed(broker, topic, group):
    scrape = broker.scrape()
    labels = {"consumergroup": f"group-of-{topic}", "topic": topic}
    for partition, (sent, committed) in enumerate(zip(SENT, COMMITTED, strict=True)):
        place = {**labels, "partition": partition}
        assert scrape.value("kafka_consumergroup_current_offset", **place) == committed
        assert scrape.value("kafka_consumergroup_lag", **place) == sent - committed
    assert scrape.value("kafka_consumergroup_current_offset_sum", **labels) == sum(COMMITTED)
    assert scrape.value("kafka_consumergroup_lag_sum", **labels) == sum(SENT) - sum(COMMITTED)


def test_members_come_and_go(broker, topic, group):
    name, labels = "kafka_consumergroup_members", {"consumergroup": f"group-of-{topic}"}
    assert broker.scrape().value(name, **labels) == 1
    group.close()
    assert broker.scrape().value(name, **labels) == 0


def test_a_deleted_topic_leaves_the_sum_of_all_as_it_was(broker, topic):
    name = "kafka_server_brokertopicmetrics_messagesin_total"
    before = broker.scrape().value(name)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result(TIMEOUT_S)
    after = broker.scrape()
    assert after.value(name) == before
    with pytest.raises(KeyError):
        after.value(name, topic=topic)


def test_every_name_that_the_dashboards_ask_for_is_there(broker, group):
    wanted = """
        kafka_server_brokertopicmetrics_bytesin_total kafka_server_brokertopicmetrics_bytesout_total
        kafka_server_brokertopicmetrics_messagesin_total kafka_server_brokertopicmetrics_totalproducerequests_total
        kafka_server_brokertopicmetrics_totalfetchrequests_total
        kafka_server_brokertopicmetrics_failedproducerequests_total
        kafka_server_brokertopicmetrics_failedfetchrequests_total kafka_server_replicamanager_leadercount
        kafka_server_replicamanager_partitioncount kafka_server_replicamanager_underreplicatedpartitions
        kafka_cluster_partition_underminisr kafka_cluster_partition_atminisr
        kafka_controller_kafkacontroller_activecontrollercount kafka_controller_kafkacontroller_offlinepartitionscount
        kafka_controller_controllerstats_uncleanleaderelections_total kafka_log_log_size
        kafka_network_socketserver_networkprocessoravgidle_percent
        kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent
        kafka_server_socket_server_metrics_connection_count kafka_server_kafkaserver_linux_disk_read_bytes
        kafka_server_kafkaserver_linux_disk_write_bytes kafka_server_raftmetrics_current_leader
        kafka_server_raftmetrics_current_epoch kafka_server_raftmetrics_current_state
        kafka_server_raftmetrics_current_vote kafka_server_raftmetrics_high_watermark
        kafka_server_raftmetrics_log_end_offset kafka_brokers kafka_broker_info kafka_topic_partitions
        kafka_topic_partition_current_offset kafka_topic_partition_oldest_offset
        kafka_topic_partition_in_sync_replica kafka_topic_partition_leader
        kafka_topic_partition_leader_is_preferred kafka_topic_partition_replicas
        kafka_topic_partition_under_replicated_partition kafka_consumergroup_current_offset
        kafka_consumergroup_current_offset_sum kafka_consumergroup_lag kafka_consumergroup_lag_sum
        kafka_consumergroup_members process_open_fds process_cpu_seconds_total
    """
    assert set(wanted.split()) - broker.scrape().names() == set()


def test_the_broker_tells_of_its_node_and_connections(broker, group):
    scrape = broker.scrape()
    assert scrape.value("kafka_brokers") == 1
    assert scrape.value("kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert scrape.value("kafka_server_raftmetrics_current_state", current_state="leader") == 1
    assert scrape.value("kafka_server_raftmetrics_current_vote") == scrape.value(
        "kafka_server_raftmetrics_current_leader"
    )
    open_now = "kafka_server_socket_server_metrics_connection_count"
    assert scrape.value(open_now, listener="PLAINTEXT", networkProcessor=0) >= 1


def test_a_ready_broker_is_healthy(broker, topic):
    status, text = broker.get("/health")
    facts = json.loads(text)
    assert status == 200
    assert (facts["status"], facts["writes_refused"]) == ("ready", None)
    assert facts["partitions"] >= len(SENT)
    assert facts["cluster_id"]


def test_there_is_nothing_else(broker):
    assert broker.get("/admin")[0] == 404


def test_a_share_group_is_told_by_the_broker_that_hands_out_its_records(broker, topic):
    group = f"share-of-{topic}"
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)
    before = broker.scrape()
    with ShareConsumer({"bootstrap.servers": broker.bootstrap, "group.id": group}) as member:
        member.subscribe([topic])
        deadline, got, during = time.monotonic() + 4 * TIMEOUT_S, 0, None
        while got < sum(SENT):
            assert time.monotonic() < deadline, f"{got} records came"
            got += len(member.poll(1.0))
            during = during or (broker.scrape() if got else None)
        member.commit_sync(TIMEOUT_S)
        after = broker.scrape()
    in_flight = "kafka_server_sharepartitionmetrics_inflightmessagecount"
    assert during.total(in_flight, group=group) > 0
    assert after.total(in_flight, group=group) == 0
    assert after.value("kafka_server_sharesessioncache_sharesessionscount") == 1
    accepted = "kafka_server_sharegroupmetrics_recordacknowledgements_total"
    assert after.value(accepted, ackType="Accept") - before.value(accepted, ackType="Accept") == sum(SENT)
    prefix = "kafka_server_brokertopicmetrics_"
    assert after.value(f"{prefix}totalsharefetchrequests_total", topic=topic) > 0
    assert after.value(f"{prefix}totalshareacknowledgementrequests_total", topic=topic) > 0
    assert after.value(f"{prefix}bytesout_total", topic=topic) >= after.value(f"{prefix}bytesin_total", topic=topic)
