"""Brokers registered and unfenced, leaders elected, producer ids handed out."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode
from penstock.core.controller.brokers import decide_register_broker, decide_unfence_broker
from penstock.core.controller.producer_ids import decide_allocate_producer_ids
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import Image
from penstock.protocol.generated.allocate_producer_ids_request import AllocateProducerIdsRequest
from penstock.protocol.generated.broker_registration_change_record import BrokerRegistrationChangeRecord
from penstock.protocol.generated.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from penstock.protocol.generated.partition_record import PartitionRecord
from penstock.protocol.generated.topic_record import TopicRecord

ORDERS = b"o" * 16


def registration(**fields: object) -> BrokerRegistrationRequest:
    values = {
        "broker_id": 1,
        "cluster_id": "c",
        "incarnation_id": b"i" * 16,
        "listeners": [Listener(name="PLAINTEXT", host="a", port=9092)],
        "features": [Feature(name="metadata.version", min_supported_version=7, max_supported_version=30)],
        "log_dirs": [b"d" * 16],
    }
    return BrokerRegistrationRequest(**(values | fields))  # type: ignore[arg-type]  # fields by name


def register(image: Image, request: BrokerRegistrationRequest | None = None, *, next_offset: int = 42, **more: bool):
    request = request or registration()
    return decide_register_broker(image, Node(1, {}), request, cluster_id="c", next_offset=next_offset, **more)


def test_a_broker_is_registered_fenced_with_its_offset_as_epoch(cluster, replay):
    image = cluster()
    result = register(image)
    assert (result.response.error_code, result.response.broker_epoch) == (0, 42)
    broker = replay(image, *result.records).brokers[1]
    assert (broker.epoch, broker.fenced, broker.log_dirs) == (42, True, (b"d" * 16,))
    assert broker.endpoint("PLAINTEXT") is not None


def test_the_same_incarnation_keeps_its_epoch(cluster, replay):
    image = replay(cluster(), *register(cluster()).records)
    assert register(image, next_offset=50).response.broker_epoch == 42


@pytest.mark.parametrize(
    ("request_", "has_session", "code"),
    [
        (registration(cluster_id="other"), False, ErrorCode.INCONSISTENT_CLUSTER_ID),
        (registration(), True, ErrorCode.DUPLICATE_BROKER_REGISTRATION),
        (registration(features=[]), False, ErrorCode.UNSUPPORTED_VERSION),
        (registration(is_migrating_zk_broker=True), False, ErrorCode.BROKER_ID_NOT_REGISTERED),
        (registration(log_dirs=[]), False, ErrorCode.INVALID_REGISTRATION),
        (registration(log_dirs=[b"d" * 16, b"d" * 16]), False, ErrorCode.INVALID_REGISTRATION),
        (registration(log_dirs=[bytes(15) + b"\x02"]), False, ErrorCode.INVALID_REGISTRATION),
        (registration(broker_id=2, log_dirs=[b"\x01" * 16]), False, ErrorCode.INVALID_REGISTRATION),
    ],
)
def test_a_broker_that_does_not_belong_is_refused(image, request_, has_session, code):
    result = register(image, request_, has_session=has_session)
    assert (result.response.error_code, result.records) == (code, [])


def orders(**fields: object) -> list[object]:
    values = {"replicas": [1, 2], "isr": [1], "leader": -1, "leader_epoch": 3, "partition_epoch": 4}
    partition = PartitionRecord(partition_id=0, topic_id=ORDERS, **(values | fields))  # type: ignore[arg-type]  # by name
    return [TopicRecord(name="orders", topic_id=ORDERS), partition]


@pytest.mark.parametrize(
    ("partition", "static", "leader", "isr"),
    [
        (orders(), {}, 1, (1,)),
        (orders(leader=2, isr=[2]), {}, 2, (2,)),
        (orders(isr=[2]), {}, -1, (2,)),
        (orders(isr=[], eligible_leader_replicas=[1, 2]), {}, 1, (1,)),
        (orders(isr=[], last_known_elr=[1]), {}, 1, (1,)),
        (orders(isr=[], eligible_leader_replicas=[2], last_known_elr=[1]), {}, -1, ()),
        (orders(isr=[]), {}, -1, ()),
        (orders(isr=[]), {"unclean.leader.election.enable": "true"}, 1, (1,)),
        (orders(isr=[], replicas=[2, 3]), {"unclean.leader.election.enable": "true"}, -1, ()),
    ],
)
def test_an_unfenced_broker_leads_where_it_holds_what_was_committed(cluster, replay, partition, static, leader, isr):
    image = cluster(1, features={"eligible.leader.replicas.version": 1})
    fenced = replay(image, *partition, BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=11, fenced=1))
    after = replay(fenced, *decide_unfence_broker(fenced, Node(1, static), 1))
    assert after.brokers[1].active
    found = after.partition("orders", 0)
    assert (found.leader, found.isr) == (leader, isr)
    assert 1 not in found.eligible or found.leader != 1


def test_producer_ids_are_handed_out_in_blocks_that_never_overlap(image, replay):
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=11)
    first = decide_allocate_producer_ids(image, request)
    second = decide_allocate_producer_ids(replay(image, *first.records), request)
    assert (first.response.producer_id_start, first.response.producer_id_len) == (0, 1000)
    assert second.response.producer_id_start == 1000


@pytest.mark.parametrize(
    ("broker", "epoch", "code"),
    [(2, 11, ErrorCode.BROKER_ID_NOT_REGISTERED), (1, 10, ErrorCode.STALE_BROKER_EPOCH)],
)
def test_producer_ids_are_for_registered_brokers_only(image, broker, epoch, code):
    request = AllocateProducerIdsRequest(broker_id=broker, broker_epoch=epoch)
    result = decide_allocate_producer_ids(image, request)
    assert (result.response.error_code, result.records) == (code, [])
