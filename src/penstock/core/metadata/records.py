"""An image as records: what a snapshot holds. Replayed on an empty image they give an equal one."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.metadata.image import METADATA_VERSION, Broker, Controller, Image, Partition, Topic
from penstock.protocol.generated.client_quota_record import ClientQuotaRecord, EntityData
from penstock.protocol.generated.config_record import ConfigRecord
from penstock.protocol.generated.feature_level_record import FeatureLevelRecord
from penstock.protocol.generated.partition_record import PartitionRecord
from penstock.protocol.generated.producer_ids_record import ProducerIdsRecord
from penstock.protocol.generated.register_broker_record import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from penstock.protocol.generated.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from penstock.protocol.generated.topic_record import TopicRecord
from penstock.protocol.message import Message


def image_records(image: Image) -> Iterator[Message]:
    """The metadata version comes first, for it says how to read the rest."""
    for name in sorted(image.features, key=lambda name: (name != METADATA_VERSION, name)):
        yield FeatureLevelRecord(name=name, feature_level=image.features[name])
    for node in sorted(image.controllers):
        yield controller_record(image.controllers[node])
    for node in sorted(image.brokers):
        yield broker_record(image.brokers[node])
    for topic in image.topics.values():
        yield from topic_records(topic)
    for (kind, resource), values in image.configs.items():
        for name, value in values.items():
            yield ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)
    yield from _quota_records(image)
    if image.producer_ids is not None:
        ids = image.producer_ids
        yield ProducerIdsRecord(broker_id=ids.broker_id, broker_epoch=ids.broker_epoch, next_producer_id=ids.next_id)
    yield from image.acls.values()
    yield from image.scram_credentials.values()
    yield from image.delegation_tokens.values()


def topic_records(topic: Topic) -> Iterator[Message]:
    yield TopicRecord(name=topic.name, topic_id=topic.id)
    for index in sorted(topic.partitions):
        yield partition_record(topic.id, index, topic.partitions[index])


def partition_record(topic_id: bytes, index: int, partition: Partition) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing),
        adding_replicas=list(partition.adding),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories),
        eligible_leader_replicas=list(partition.eligible) or None,
        last_known_elr=list(partition.last_known_eligible) or None,
    )


def broker_record(broker: Broker) -> RegisterBrokerRecord:
    cordoned = broker.cordoned_log_dirs
    return RegisterBrokerRecord(
        broker_id=broker.id,
        is_migrating_zk_broker=broker.migrating_zk,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            BrokerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in broker.endpoints
        ],
        features=[
            BrokerFeature(name=f.name, min_supported_version=f.low, max_supported_version=f.high)
            for f in broker.features
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.log_dirs),
        cordoned_log_dirs=None if cordoned is None else list(cordoned),
    )


def controller_record(controller: Controller) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zk_migration_ready,
        end_points=[
            ControllerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in controller.endpoints
        ],
        features=[
            ControllerFeature(name=f.name, min_supported_version=f.low, max_supported_version=f.high)
            for f in controller.features
        ],
    )


def _quota_records(image: Image) -> Iterator[Message]:
    for entity, values in image.quotas.items():
        for key, value in values.items():
            parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
            yield ClientQuotaRecord(entity=parts, key=key, value=value, remove=False)
