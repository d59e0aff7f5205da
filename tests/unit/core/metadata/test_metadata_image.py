"""Records in, image out, records again: nothing is lost on the way."""

from __future__ import annotations

import pytest

from penstock.base.configs.define import ResourceType
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import LOST_DIRECTORY, NO_ID, UNASSIGNED_DIRECTORY
from penstock.core.metadata.delta import Delta
from penstock.core.metadata.image import EMPTY, Image, ProducerIds
from penstock.core.metadata.loader import Loader
from penstock.core.metadata.records import image_records
from penstock.core.metadata.versions import record_version
from penstock.protocol.generated.abort_transaction_record import AbortTransactionRecord
from penstock.protocol.generated.access_control_entry_record import AccessControlEntryRecord
from penstock.protocol.generated.begin_transaction_record import BeginTransactionRecord
from penstock.protocol.generated.broker_registration_change_record import BrokerRegistrationChangeRecord
from penstock.protocol.generated.clear_elr_record import ClearElrRecord
from penstock.protocol.generated.client_quota_record import ClientQuotaRecord, EntityData
from penstock.protocol.generated.config_record import ConfigRecord
from penstock.protocol.generated.delegation_token_record import DelegationTokenRecord
from penstock.protocol.generated.end_transaction_record import EndTransactionRecord
from penstock.protocol.generated.feature_level_record import FeatureLevelRecord
from penstock.protocol.generated.fence_broker_record import FenceBrokerRecord
from penstock.protocol.generated.no_op_record import NoOpRecord
from penstock.protocol.generated.partition_change_record import PartitionChangeRecord
from penstock.protocol.generated.partition_record import PartitionRecord
from penstock.protocol.generated.producer_ids_record import ProducerIdsRecord
from penstock.protocol.generated.register_broker_record import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from penstock.protocol.generated.register_controller_record import ControllerEndpoint, RegisterControllerRecord
from penstock.protocol.generated.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from penstock.protocol.generated.remove_delegation_token_record import RemoveDelegationTokenRecord
from penstock.protocol.generated.remove_topic_record import RemoveTopicRecord
from penstock.protocol.generated.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from penstock.protocol.generated.topic_record import TopicRecord
from penstock.protocol.generated.unfence_broker_record import UnfenceBrokerRecord
from penstock.protocol.generated.unregister_broker_record import UnregisterBrokerRecord
from penstock.protocol.generated.user_scram_credential_record import UserScramCredentialRecord
from penstock.protocol.message import Message
from penstock.protocol.metadata_frames import decode_metadata, encode_metadata
from penstock.protocol.registry import METADATA_RECORDS

ORDERS, PAYMENTS = b"o" * 16, b"p" * 16
DIRECTORY = b"d" * 16


def after(*records: Message, image: Image = EMPTY) -> Image:
    delta = Delta(image)
    for record in records:
        delta.replay(record)
    following = delta.apply()
    following.check()
    return following


def registration(broker_id: int = 1, epoch: int = 5, **fields: object) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id,
        broker_epoch=epoch,
        incarnation_id=b"i" * 16,
        end_points=[BrokerEndpoint(name="PLAINTEXT", host="a", port=9092, security_protocol=0)],
        features=[BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=30)],
        rack="r1",
        log_dirs=[DIRECTORY],
        **fields,  # type: ignore[arg-type]  # test fields by name
    )


def partition(topic_id: bytes = ORDERS, index: int = 0, **fields: object) -> PartitionRecord:
    values: dict[str, object] = {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "leader_epoch": 3}
    values |= {"partition_epoch": 4, "directories": [DIRECTORY, DIRECTORY]} | fields
    return PartitionRecord(partition_id=index, topic_id=topic_id, **values)  # type: ignore[arg-type]  # by name


EVERYTHING: list[Message] = [
    FeatureLevelRecord(name="metadata.version", feature_level=30),
    FeatureLevelRecord(name="group.version", feature_level=1),
    NoOpRecord(),
    RegisterControllerRecord(
        controller_id=1,
        incarnation_id=b"c" * 16,
        end_points=[ControllerEndpoint(name="CONTROLLER", host="a", port=9093, security_protocol=0)],
    ),
    registration(1),
    registration(2, in_controlled_shutdown=True, cordoned_log_dirs=[DIRECTORY], fenced=False),
    TopicRecord(name="orders", topic_id=ORDERS),
    partition(),
    partition(index=1, removing_replicas=[2], adding_replicas=[3], leader_recovery_state=1),
    TopicRecord(name="payments", topic_id=PAYMENTS),
    partition(PAYMENTS, isr=[], leader=-1, eligible_leader_replicas=[1], last_known_elr=[2]),
    ConfigRecord(resource_type=ResourceType.TOPIC, resource_name="orders", name="retention.ms", value="1"),
    ConfigRecord(resource_type=ResourceType.BROKER, resource_name="", name="log.retention.ms", value="2"),
    ConfigRecord(resource_type=ResourceType.BROKER, resource_name="1", name="max.connections", value="3"),
    ConfigRecord(resource_type=ResourceType.GROUP, resource_name="g", name="consumer.session.timeout.ms", value="4"),
    ConfigRecord(resource_type=ResourceType.CLIENT_METRICS, resource_name="m", name="interval.ms", value="5"),
    ClientQuotaRecord(
        entity=[EntityData(entity_type="user", entity_name="ann"), EntityData(entity_type="client-id")],
        key="producer_byte_rate",
        value=1.5,
    ),
    ProducerIdsRecord(broker_id=1, broker_epoch=5, next_producer_id=2000),
    AccessControlEntryRecord(id=b"a" * 16, resource_type=2, resource_name="orders", principal="User:ann", host="*"),
    UserScramCredentialRecord(name="ann", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096),
    DelegationTokenRecord(owner="User:ann", requester="User:ann", renewers=["User:bob"], token_id="t"),
]


def test_an_image_written_as_records_and_replayed_is_the_same_image():
    image = after(*EVERYTHING)
    assert after(*image_records(image)) == image


def test_records_of_an_image_survive_their_bytes():
    image = after(*EVERYTHING)
    packed = [encode_metadata(r, record_version(r, image.features)) for r in image_records(image)]
    assert after(*(decode_metadata(value)[0] for value in packed)) == image


def test_the_first_record_of_an_image_is_the_metadata_version():
    first = next(image_records(after(*reversed(EVERYTHING[:2]))))
    assert first == FeatureLevelRecord(name="metadata.version", feature_level=30)


def test_every_record_type_of_the_log_can_be_replayed():
    transaction = {"BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"}
    needs_others = {
        "PartitionRecord": partition(index=2),
        "PartitionChangeRecord": PartitionChangeRecord(partition_id=0, topic_id=ORDERS, isr=[1]),
        "RemoveTopicRecord": RemoveTopicRecord(topic_id=ORDERS),
        "FenceBrokerRecord": FenceBrokerRecord(id=1, epoch=5),
        "UnfenceBrokerRecord": UnfenceBrokerRecord(id=1, epoch=5),
        "UnregisterBrokerRecord": UnregisterBrokerRecord(broker_id=1, broker_epoch=5),
        "BrokerRegistrationChangeRecord": BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=-1),
        "RemoveAccessControlEntryRecord": RemoveAccessControlEntryRecord(id=b"a" * 16),
        "RemoveUserScramCredentialRecord": RemoveUserScramCredentialRecord(name="ann", mechanism=1),
        "RemoveDelegationTokenRecord": RemoveDelegationTokenRecord(token_id="t"),
    }
    for type_id in METADATA_RECORDS:
        record_class = METADATA_RECORDS[type_id]
        if record_class.__name__ not in transaction:
            after(needs_others.get(record_class.__name__, record_class()), image=after(*EVERYTHING))


def test_a_change_of_leader_raises_both_epochs():
    change = PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=2, isr=[2])
    changed = after(change, image=after(*EVERYTHING)).partition("orders", 0)
    assert changed is not None
    assert (changed.leader, changed.isr, changed.leader_epoch, changed.partition_epoch) == (2, (2,), 4, 5)
    assert changed.replicas == (1, 2)


def test_a_change_without_a_leader_keeps_the_leader_epoch():
    change = PartitionChangeRecord(partition_id=0, topic_id=ORDERS, isr=[1])
    changed = after(change, image=after(*EVERYTHING)).partition("orders", 0)
    assert changed is not None
    assert (changed.leader, changed.leader_epoch, changed.partition_epoch) == (1, 3, 5)


def test_a_removed_topic_takes_its_configurations_along():
    image = after(RemoveTopicRecord(topic_id=ORDERS), image=after(*EVERYTHING))
    assert image.topic("orders") is None
    assert image.topic_by_id(ORDERS) is None
    assert image.config(ResourceType.TOPIC, "orders") == {}


def test_an_older_image_is_not_touched_by_later_deltas():
    image = after(*EVERYTHING)
    copy = after(*image_records(image))
    after(
        PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=2),
        ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value=None),
        RemoveTopicRecord(topic_id=PAYMENTS),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=1),
        image=image,
    )
    assert image == copy


def test_topics_that_a_delta_does_not_name_are_shared():
    image = after(*EVERYTHING)
    following = after(PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=2), image=image)
    assert following.topics["payments"] is image.topics["payments"]
    assert following.configs is image.configs


def test_a_delta_says_what_changed():
    delta = Delta(after(*EVERYTHING))
    delta.replay(TopicRecord(name="new", topic_id=b"n" * 16))
    delta.replay(RemoveTopicRecord(topic_id=PAYMENTS))
    delta.replay(ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="9"))
    assert list(delta.changed_topics) == [b"n" * 16]
    assert [t.name for t in delta.deleted_topics.values()] == ["payments"]
    assert list(delta.changed_configs) == [(2, "orders")]


def test_a_registration_change_fences_and_unfences():
    image = after(*EVERYTHING)
    assert image.brokers[1].fenced
    image = after(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=-1), image=image)
    assert image.brokers[1].active
    image = after(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, in_controlled_shutdown=1), image=image)
    assert not image.brokers[1].active
    assert not image.brokers[1].fenced


def test_eligible_leader_replicas_can_be_cleared_for_all_topics():
    image = after(ClearElrRecord(topic_name=""), image=after(*EVERYTHING))
    cleared = image.partition("payments", 0)
    assert cleared is not None
    assert cleared.eligible == cleared.last_known_eligible == ()


def test_producer_ids_are_those_of_the_last_block():
    image = after(*EVERYTHING)
    assert image.producer_ids == ProducerIds(1, 5, 2000)
    assert image.next_producer_id == 2000
    assert EMPTY.next_producer_id == 0


@pytest.mark.parametrize(
    "record",
    [
        partition(b"x" * 16),
        PartitionChangeRecord(partition_id=9, topic_id=ORDERS),
        RemoveTopicRecord(topic_id=b"x" * 16),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=6),
        UnregisterBrokerRecord(broker_id=7, broker_epoch=5),
        RemoveAccessControlEntryRecord(id=b"x" * 16),
    ],
)
def test_a_record_that_cannot_follow_is_refused(record: Message):
    with pytest.raises(KafkaError) as refusal:
        after(record, image=after(*EVERYTHING))
    assert refusal.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_metadata_transaction_takes_effect_at_its_end():
    loader = Loader()
    loader.load([BeginTransactionRecord(name="t"), TopicRecord(name="orders", topic_id=ORDERS)], 1, 1)
    assert loader.image.topics == {}
    assert loader.in_transaction
    loader.load([partition(), EndTransactionRecord()], 3, 1)
    assert list(loader.image.topics["orders"].partitions) == [0]
    assert (loader.image.offset, loader.image.epoch) == (3, 1)


def test_an_aborted_metadata_transaction_leaves_nothing():
    loader = Loader()
    loader.load([BeginTransactionRecord(), TopicRecord(name="orders", topic_id=ORDERS)], 1, 1)
    loader.load([AbortTransactionRecord(), TopicRecord(name="payments", topic_id=PAYMENTS)], 3, 1)
    assert list(loader.image.topics) == ["payments"]


@pytest.mark.parametrize(
    ("record", "level", "version"),
    [
        (partition(), 30, 2),
        (partition(), 20, 1),
        (partition(), 16, 0),
        (registration(), 30, 4),
        (registration(), 29, 3),
        (registration(), 7, 1),
        (BrokerRegistrationChangeRecord(fenced=-1), 30, 0),
        (BrokerRegistrationChangeRecord(in_controlled_shutdown=1), 30, 1),
        (BrokerRegistrationChangeRecord(log_dirs=[DIRECTORY]), 30, 2),
        (BrokerRegistrationChangeRecord(cordoned_log_dirs=[]), 30, 3),
        (TopicRecord(), 30, 0),
    ],
)
def test_a_record_is_written_in_the_version_kafka_writes(record: Message, level: int, version: int):
    assert record_version(record, {"metadata.version": level}) == version


@pytest.mark.parametrize(
    ("directories", "offline"),
    [
        ([DIRECTORY, DIRECTORY, DIRECTORY, DIRECTORY], [2, 3]),
        ([LOST_DIRECTORY, DIRECTORY, DIRECTORY, DIRECTORY], [1, 2, 3]),
        ([NO_ID, UNASSIGNED_DIRECTORY, DIRECTORY, b"x" * 16], [2, 3, 4]),
        ([], [2, 3]),
    ],
)
def test_a_replica_is_offline_on_a_broker_that_is_fenced_or_gone_or_has_lost_it(
    directories: list[bytes], offline: list[int]
):
    brokers = [registration(1, fenced=False), registration(2, fenced=True), registration(4, fenced=False)]
    topic = [TopicRecord(name="orders", topic_id=ORDERS), partition(replicas=[1, 2, 3, 4], directories=directories)]
    image = after(*brokers, *topic)
    assert image.offline_replicas(image.topics["orders"].partitions[0]) == offline
