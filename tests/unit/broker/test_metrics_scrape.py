"""What one scrape tells: names, labels and values as Prometheus reads them."""

from __future__ import annotations

import asyncio

import pytest
from metrics_fakes import FakeServices, broker, described, make_sources, samples, value

from penstock.base.configs.define import ResourceType
from penstock.broker.metrics.collect import collect
from penstock.broker.metrics.text import Exposition, escaped
from penstock.core.groups.classic import ClassicGroup
from penstock.core.groups.consumer.group import ConsumerGroup
from penstock.core.groups.consumer.member import ConsumerMember
from penstock.core.groups.share.group import ShareGroup, ShareMember
from penstock.core.metadata.image import Image
from penstock.core.sharing.states import AcknowledgeType

LEADER = 1
OTHER = 2


@pytest.fixture
def services() -> FakeServices:
    return FakeServices()


def scrape(services, **raft):
    return samples(asyncio.run(collect(make_sources(services, **raft))))


def test_traffic_is_told_by_topic_and_in_all(services):
    for topic, messages in (("orders", 30), ("clicks", 12)):
        services.partitions.put(topic, 0)
        services.partitions.traffic[topic].messages_in = messages
        services.partitions.traffic[topic].failed_fetches = 1
    found = scrape(services)
    assert value(found, "kafka_server_brokertopicmetrics_messagesin_total", topic="orders") == 30
    assert value(found, "kafka_server_brokertopicmetrics_messagesin_total", topic="clicks") == 12
    assert value(found, "kafka_server_brokertopicmetrics_messagesin_total") == 42
    assert value(found, "kafka_server_brokertopicmetrics_failedfetchrequests_total") == 2


def test_a_topic_that_is_gone_stays_in_the_sum(services):
    services.partitions.past_traffic.bytes_in = 100
    services.partitions.put("orders", 0)
    services.partitions.traffic["orders"].bytes_in = 11
    assert value(scrape(services), "kafka_server_brokertopicmetrics_bytesin_total") == 111


def test_every_counter_of_a_topic_has_the_name_that_dashboards_ask_for(services):
    services.partitions.put("orders", 0)
    found = scrape(services)
    names = "messagesin bytesin bytesout totalproducerequests totalfetchrequests failedproducerequests"
    for name in [*names.split(), "failedfetchrequests"]:
        assert value(found, f"kafka_server_brokertopicmetrics_{name}_total", topic="orders") == 0


def test_a_partition_led_here_has_its_offsets_and_copies(services):
    services.add_topic("orders", described(replicas=(2, 1, 3), isr=(1, 3)))
    services.partitions.put("orders", 0, start=5, watermark=25, size_bytes=4096)
    found = scrape(services)

    def told(name):
        return value(found, name, topic="orders", partition=0)

    assert told("kafka_log_log_size") == 4096
    assert told("kafka_topic_partition_oldest_offset") == 5
    assert told("kafka_topic_partition_current_offset") == 25
    assert told("kafka_topic_partition_leader") == LEADER
    assert told("kafka_topic_partition_replicas") == 3
    assert told("kafka_topic_partition_in_sync_replica") == 2
    assert told("kafka_topic_partition_leader_is_preferred") == 0
    assert told("kafka_topic_partition_under_replicated_partition") == 1


def test_a_partition_led_elsewhere_is_told_elsewhere(services):
    services.add_topic("orders", described(leader=OTHER, replicas=(OTHER, LEADER)))
    services.partitions.put("orders", 0, watermark=25, size_bytes=4096)
    found = scrape(services)
    assert value(found, "kafka_log_log_size", topic="orders", partition=0) == 4096
    assert not [key for key in found if key[0].startswith("kafka_topic_partition_")]
    assert value(found, "kafka_server_replicamanager_partitioncount") == 1
    assert value(found, "kafka_server_replicamanager_leadercount") == 0


@pytest.mark.parametrize(
    ("asked", "isr", "under", "at"),
    [("2", (1, 2, 3), 0, 0), ("2", (1, 2), 0, 1), ("2", (1,), 1, 0), ("5", (1, 2), 1, 0)],
)
def test_copies_in_sync_are_held_against_the_topics_minimum(services, asked, isr, under, at):
    services.image = Image(configs={(ResourceType.TOPIC, "orders"): {"min.insync.replicas": asked}})
    services.add_topic("orders", described(replicas=(1, 2, 3), isr=isr))
    services.partitions.put("orders", 0)
    found = scrape(services)
    assert value(found, "kafka_cluster_partition_underminisr", topic="orders", partition=0) == under
    assert value(found, "kafka_cluster_partition_atminisr", topic="orders", partition=0) == at
    assert value(found, "kafka_server_replicamanager_underminisrpartitioncount") == under


def test_a_minimum_above_the_number_of_copies_counts_as_that_number(services):
    services.image = Image(configs={(ResourceType.BROKER, ""): {"min.insync.replicas": "2"}})
    services.add_topic("orders", described(replicas=(LEADER,)))
    services.partitions.put("orders", 0)
    found = scrape(services)
    assert value(found, "kafka_cluster_partition_underminisr", topic="orders", partition=0) == 0
    assert value(found, "kafka_cluster_partition_atminisr", topic="orders", partition=0) == 1


def test_the_active_controller_tells_of_the_cluster(services):
    services.image = Image(brokers={1: broker(1), 2: broker(2), 3: broker(3, fenced=True)})
    services.add_topic("orders", described(), described(leader=-1, replicas=(3,), isr=(3,)))
    services.controller.unclean_elections = 2
    found = scrape(services)
    assert value(found, "kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert value(found, "kafka_controller_kafkacontroller_offlinepartitionscount") == 1
    assert value(found, "kafka_controller_kafkacontroller_fencedbrokercount") == 1
    assert value(found, "kafka_controller_controllerstats_uncleanleaderelections_total") == 2
    assert value(found, "kafka_brokers") == 2
    assert value(found, "kafka_broker_info", id=2, address="localhost:9092") == 1
    assert value(found, "kafka_topic_partitions", topic="orders") == 2


def test_a_standby_controller_adds_nothing_to_a_sum_over_all(services):
    services.image = Image(brokers={1: broker(1), 2: broker(2)})
    services.add_topic("orders", described(leader=-1))
    found = scrape(services, node_id=OTHER)
    assert value(found, "kafka_controller_kafkacontroller_activecontrollercount") == 0
    assert value(found, "kafka_controller_kafkacontroller_offlinepartitionscount") == 0
    assert not [key for key in found if key[0] in ("kafka_brokers", "kafka_topic_partitions")]


def test_lag_is_the_watermark_less_what_is_committed(services):
    for index, watermark in enumerate((100, 50)):
        services.partitions.put("orders", index, watermark=watermark)
        services.commit("billing", "orders", index, 40)
    found = scrape(services)
    assert (
        value(found, "kafka_consumergroup_current_offset", consumergroup="billing", topic="orders", partition=0) == 40
    )
    assert value(found, "kafka_consumergroup_lag", consumergroup="billing", topic="orders", partition=0) == 60
    assert value(found, "kafka_consumergroup_lag", consumergroup="billing", topic="orders", partition=1) == 10
    assert value(found, "kafka_consumergroup_current_offset_sum", consumergroup="billing", topic="orders") == 80
    assert value(found, "kafka_consumergroup_lag_sum", consumergroup="billing", topic="orders") == 70


def test_without_the_partition_there_is_an_offset_and_no_lag(services):
    services.commit("billing", "orders", 0, 40)
    found = scrape(services)
    assert (
        value(found, "kafka_consumergroup_current_offset", consumergroup="billing", topic="orders", partition=0) == 40
    )
    assert not [key for key in found if key[0].startswith("kafka_consumergroup_lag")]


def test_members_are_counted_also_where_there_are_none(services):
    group = services.shard.state.groups["billing"] = ClassicGroup("billing", None)
    group.members = {"a": None, "b": None}
    services.commit("billing", "orders", 0, 1)
    services.commit("simple", "orders", 0, 1)
    found = scrape(services)
    assert value(found, "kafka_consumergroup_members", consumergroup="billing") == 2
    assert value(found, "kafka_consumergroup_members", consumergroup="simple") == 0
    assert value(found, "kafka_coordinator_group_groupmetadatamanager_numgroups") == 2
    assert value(found, "kafka_coordinator_group_groupmetadatamanager_numoffsets") == 2


def test_consumer_groups_are_counted_by_their_state(services):
    members = {"a": ConsumerMember("a", epoch=1)}
    services.shard.state.store.consumers["new"] = ConsumerGroup("new", epoch=1, target_epoch=1, members=members)
    services.commit("new", "orders", 0, 1)
    found = scrape(services)
    counted = "kafka_server_group_coordinator_metrics_consumer_group_count"
    assert value(found, counted, state="stable") == 1 and value(found, counted, state="empty") == 0
    assert value(found, "kafka_consumergroup_members", consumergroup="new") == 1
    assert value(found, "kafka_coordinator_group_groupmetadatamanager_numgroups") == 0


def test_share_groups_are_counted_by_their_state(services):
    shares = services.shard.state.store.shares
    shares["jobs"] = ShareGroup("jobs", members={"a": ShareMember("a")})
    shares["idle"] = ShareGroup("idle")
    found = scrape(services)
    assert value(found, "kafka_consumergroup_members", consumergroup="jobs") == 1
    assert value(found, "kafka_server_group_coordinator_metrics_share_group_count", state="stable") == 1
    assert value(found, "kafka_server_group_coordinator_metrics_share_group_count", state="empty") == 1


@pytest.mark.parametrize("group", ['with "quotes"', "back\\slash", "two\nlines", "größe ☂"])
def test_any_group_id_arrives_as_it_is(services, group):
    services.commit(group, "orders", 0, 9)
    found = scrape(services)
    assert value(found, "kafka_consumergroup_members", consumergroup=group) == 0


def test_bytes_that_are_no_text_do_not_break_the_scrape(services):
    services.commit("\udcff", "orders", 0, 9)
    services.commit("\udcfe", "orders", 0, 9)
    assert value(scrape(services), "kafka_consumergroup_members", consumergroup="\\udcff") == 0


def test_connections_requests_and_the_quorum(services):
    found = scrape(services)
    listener = {"listener": "PLAINTEXT", "networkProcessor": 0}
    assert value(found, "kafka_server_socket_server_metrics_connection_count", **listener) == 2
    assert value(found, "penstock_refused_connections_total", listener="PLAINTEXT") == 5
    assert value(found, "kafka_network_requestmetrics_requests_total", request="Produce") == 7
    assert value(found, "kafka_server_raftmetrics_current_state", current_state="leader") == 1
    assert value(found, "kafka_server_raftmetrics_current_epoch") == 3
    assert value(found, "kafka_server_raftmetrics_high_watermark") == 41
    assert value(found, "kafka_network_socketserver_networkprocessoravgidle_percent") == 1
    assert value(found, "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent") == 1


def test_the_process_and_its_disk_are_told(services):
    found = scrape(services)
    assert value(found, "process_open_fds") > 0
    assert value(found, "python_gc_collections_total", generation=0) >= 0
    assert value(found, "kafka_server_kafkaserver_linux_disk_write_bytes") >= 0


def test_a_full_disk_shows(services):
    assert value(scrape(services), "penstock_writes_refused") == 0
    services.partitions.refusal = "the disk is nearly full"
    assert value(scrape(services), "penstock_writes_refused") == 1


def test_a_family_without_samples_is_left_out():
    out = Exposition()
    out.family("empty", "gauge", "Nothing")
    out.gauge("one", "Something", 1)
    assert b"".join(out.pieces()) == b"# HELP one Something\n# TYPE one gauge\none 1\n"


def test_lines_of_a_family_stand_together_in_whatever_order_they_come():
    out = Exposition()
    out.counter("a_total", "First", 1, of="x")
    out.gauge("b", "Second", 2.5)
    out.counter("a_total", "First", 3, of="y")
    lines = b"".join(out.pieces()).decode().splitlines()
    assert lines[2:4] == ['a_total{of="x"} 1', 'a_total{of="y"} 3']


def test_escapes():
    assert escaped('a"b\\c\nd') == 'a\\"b\\\\c\\nd'


def test_what_a_share_group_has_in_flight_is_told_by_partition(services):
    services.shares.put('a"b', "orders", 2, records=30, batches=4, timed_out=7)
    services.shares.sessions = ["one", "two"]
    found = scrape(services)
    labels = {"group": 'a"b', "topic": "orders", "partition": 2}
    assert value(found, "kafka_server_sharepartitionmetrics_inflightmessagecount", **labels) == 30
    assert value(found, "kafka_server_sharepartitionmetrics_inflightbatchcount", **labels) == 4
    assert value(found, "kafka_server_sharepartitionmetrics_acquisitionlocktimeout_total", **labels) == 7
    assert value(found, "kafka_server_sharesessioncache_sharesessionscount") == 2
    assert value(found, "kafka_server_sharesessioncache_sharepartitionscount") == 1


def test_acknowledgements_are_told_by_what_was_said(services):
    services.shares.total.acknowledged[AcknowledgeType.RELEASE] = 5
    found = scrape(services)
    name = "kafka_server_sharegroupmetrics_recordacknowledgements_total"
    told = {said: value(found, name, ackType=said) for said in ("Accept", "Release", "Reject", "Renew")}
    assert told == {"Accept": 0, "Release": 5, "Reject": 0, "Renew": 0}
