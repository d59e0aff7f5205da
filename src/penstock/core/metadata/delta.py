"""A delta: the records that lead from one image to the next.

A section of the image is copied when a record first touches it; topics are copied one by one, their partitions only
where one of them changed. `apply` gives the next image; what changed stays in `changed_*` for those who follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from penstock.base.configs.define import ResourceType
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import NO_ID, id_text
from penstock.core.metadata.image import (
    Broker,
    Controller,
    Endpoint,
    FeatureRange,
    Image,
    Partition,
    ProducerIds,
    QuotaEntity,
    Resource,
    Topic,
)
from penstock.protocol.generated.access_control_entry_record import AccessControlEntryRecord
from penstock.protocol.generated.broker_registration_change_record import BrokerRegistrationChangeRecord
from penstock.protocol.generated.clear_elr_record import ClearElrRecord
from penstock.protocol.generated.client_quota_record import ClientQuotaRecord
from penstock.protocol.generated.config_record import ConfigRecord
from penstock.protocol.generated.delegation_token_record import DelegationTokenRecord
from penstock.protocol.generated.feature_level_record import FeatureLevelRecord
from penstock.protocol.generated.fence_broker_record import FenceBrokerRecord
from penstock.protocol.generated.partition_change_record import PartitionChangeRecord
from penstock.protocol.generated.partition_record import PartitionRecord
from penstock.protocol.generated.producer_ids_record import ProducerIdsRecord
from penstock.protocol.generated.register_broker_record import RegisterBrokerRecord
from penstock.protocol.generated.register_controller_record import RegisterControllerRecord
from penstock.protocol.generated.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from penstock.protocol.generated.remove_delegation_token_record import RemoveDelegationTokenRecord
from penstock.protocol.generated.remove_topic_record import RemoveTopicRecord
from penstock.protocol.generated.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from penstock.protocol.generated.topic_record import TopicRecord
from penstock.protocol.generated.unfence_broker_record import UnfenceBrokerRecord
from penstock.protocol.generated.unregister_broker_record import UnregisterBrokerRecord
from penstock.protocol.generated.user_scram_credential_record import UserScramCredentialRecord
from penstock.protocol.message import Message

K = TypeVar("K")
V = TypeVar("V")

_UNCHANGED_LEADER = -2


class Delta:
    def __init__(self, image: Image) -> None:
        self.image = image
        self.changed_topics: dict[bytes, None] = {}
        """Ids of topics created or changed, in the order of the records."""
        self.deleted_topics: dict[bytes, Topic] = {}
        self.changed_configs: dict[Resource, None] = {}
        self.changed_brokers: dict[int, None] = {}
        self._sections: dict[str, dict[Any, Any]] = {}
        self._open_topics: dict[bytes, dict[int, Partition]] = {}
        self._producer_ids = image.producer_ids

    def replay(self, record: Message) -> None:
        """Take one record. KafkaError where it cannot follow what came before it, or is of no known type."""
        handler = _HANDLERS.get(type(record))
        if handler is not None:
            handler(self, record)
        elif type(record).__name__ not in _WITHOUT_EFFECT:
            raise _corrupt(f"{type(record).__name__} is not a metadata record")

    def apply(self, offset: int = -1, epoch: int = -1) -> Image:
        """The next image. The delta is done with after it."""
        before = self.image
        section = self._sections.get
        return Image(
            offset=max(offset, before.offset),
            epoch=max(epoch, before.epoch),
            features=section("features", before.features),
            brokers=section("brokers", before.brokers),
            controllers=section("controllers", before.controllers),
            topics=section("topics", before.topics),
            topics_by_id=section("topics_by_id", before.topics_by_id),
            configs=section("configs", before.configs),
            producer_ids=self._producer_ids,
            quotas=section("quotas", before.quotas),
            acls=section("acls", before.acls),
            scram_credentials=section("scram_credentials", before.scram_credentials),
            delegation_tokens=section("delegation_tokens", before.delegation_tokens),
        )

    def _section(self, name: str, of: Mapping[K, V]) -> dict[K, V]:
        """Our own copy of a section, made when it is first asked for."""
        section = self._sections.get(name)
        if section is None:
            section = self._sections[name] = dict(of)
        return section

    def _feature(self, record: FeatureLevelRecord) -> None:
        features = self._section("features", self.image.features)
        if record.feature_level == 0:
            features.pop(record.name, None)
        else:
            features[record.name] = record.feature_level

    def _register_broker(self, record: RegisterBrokerRecord) -> None:
        cordoned = record.cordoned_log_dirs
        self._section("brokers", self.image.brokers)[record.broker_id] = Broker(
            id=record.broker_id,
            epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            endpoints=tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in record.end_points),
            features=tuple(
                FeatureRange(f.name, f.min_supported_version, f.max_supported_version) for f in record.features
            ),
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            log_dirs=tuple(record.log_dirs),
            cordoned_log_dirs=None if cordoned is None else tuple(cordoned),
            migrating_zk=record.is_migrating_zk_broker,
        )
        self.changed_brokers[record.broker_id] = None

    def _broker(self, broker_id: int, epoch: int) -> Broker:
        broker = self._section("brokers", self.image.brokers).get(broker_id)
        if broker is None or broker.epoch != epoch:
            raise _corrupt(f"broker {broker_id} is not registered with epoch {epoch}")
        self.changed_brokers[broker_id] = None
        return broker

    def _unregister_broker(self, record: UnregisterBrokerRecord) -> None:
        self._broker(record.broker_id, record.broker_epoch)
        del self._section("brokers", self.image.brokers)[record.broker_id]

    def _fence_broker(self, record: FenceBrokerRecord) -> None:
        broker = self._broker(record.id, record.epoch)
        self._section("brokers", self.image.brokers)[record.id] = broker._replace(fenced=True)

    def _unfence_broker(self, record: UnfenceBrokerRecord) -> None:
        broker = self._broker(record.id, record.epoch)
        self._section("brokers", self.image.brokers)[record.id] = broker._replace(fenced=False)

    def _change_broker(self, record: BrokerRegistrationChangeRecord) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        if record.fenced:
            broker = broker._replace(fenced=record.fenced > 0)
        if record.in_controlled_shutdown:
            broker = broker._replace(in_controlled_shutdown=True)
        if record.log_dirs:
            broker = broker._replace(log_dirs=tuple(record.log_dirs))
        if record.cordoned_log_dirs is not None:
            broker = broker._replace(cordoned_log_dirs=tuple(record.cordoned_log_dirs))
        self._section("brokers", self.image.brokers)[record.broker_id] = broker

    def _register_controller(self, record: RegisterControllerRecord) -> None:
        self._section("controllers", self.image.controllers)[record.controller_id] = Controller(
            id=record.controller_id,
            incarnation_id=record.incarnation_id,
            zk_migration_ready=record.zk_migration_ready,
            endpoints=tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in record.end_points),
            features=tuple(
                FeatureRange(f.name, f.min_supported_version, f.max_supported_version) for f in record.features
            ),
        )

    def _put_topic(self, topic: Topic) -> None:
        self._section("topics", self.image.topics)[topic.name] = topic
        self._section("topics_by_id", self.image.topics_by_id)[topic.id] = topic
        self.changed_topics[topic.id] = None

    def _topic(self, record: TopicRecord) -> None:
        known = self._section("topics", self.image.topics).get(record.name)
        if known is not None and known.id != record.topic_id:
            raise _corrupt(f"the topic {record.name!r} is there already, with the id {id_text(known.id)}")
        partitions: dict[int, Partition] = {}
        self._open_topics[record.topic_id] = partitions
        self._put_topic(Topic(record.name, record.topic_id, partitions))

    def _partitions(self, topic_id: bytes) -> dict[int, Partition]:
        """Our own copy of a topic's partitions, made when the first of them changes."""
        partitions = self._open_topics.get(topic_id)
        if partitions is None:
            topic = self._section("topics_by_id", self.image.topics_by_id).get(topic_id)
            if topic is None:
                raise _corrupt(f"no topic has the id {id_text(topic_id)}")
            partitions = self._open_topics[topic_id] = dict(topic.partitions)
            self._put_topic(topic._replace(partitions=partitions))
        return partitions

    def _partition(self, record: PartitionRecord) -> None:
        self._partitions(record.topic_id)[record.partition_id] = Partition(
            replicas=tuple(record.replicas),
            isr=tuple(record.isr),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            directories=_directories(tuple(record.directories), record.replicas),
            removing=tuple(record.removing_replicas),
            adding=tuple(record.adding_replicas),
            leader_recovery_state=record.leader_recovery_state,
            eligible=tuple(record.eligible_leader_replicas or ()),
            last_known_eligible=tuple(record.last_known_elr or ()),
        )

    def _change_partition(self, record: PartitionChangeRecord) -> None:
        partitions = self._partitions(record.topic_id)
        before = partitions.get(record.partition_id)
        if before is None:
            raise _corrupt(f"topic {id_text(record.topic_id)} has no partition {record.partition_id}")
        partitions[record.partition_id] = changed_partition(before, record)

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        topic = self._section("topics_by_id", self.image.topics_by_id).pop(record.topic_id, None)
        if topic is None:
            raise _corrupt(f"no topic has the id {id_text(record.topic_id)}")
        del self._section("topics", self.image.topics)[topic.name]
        self._section("configs", self.image.configs).pop((ResourceType.TOPIC, topic.name), None)
        self._open_topics.pop(record.topic_id, None)
        self.changed_topics.pop(record.topic_id, None)
        if record.topic_id in self.image.topics_by_id:
            self.deleted_topics[record.topic_id] = topic

    def _clear_eligible(self, record: ClearElrRecord) -> None:
        topics = self._section("topics", self.image.topics)
        if record.topic_name and record.topic_name not in topics:
            raise _corrupt(f"no topic has the name {record.topic_name!r}")
        for topic in [topics[record.topic_name]] if record.topic_name else list(topics.values()):
            for index, partition in topic.partitions.items():
                if partition.eligible or partition.last_known_eligible:
                    cleared = partition._replace(eligible=(), last_known_eligible=())
                    self._partitions(topic.id)[index] = cleared

    def _config(self, record: ConfigRecord) -> None:
        configs = self._section("configs", self.image.configs)
        resource = (record.resource_type, record.resource_name)
        values = dict(configs.get(resource, {}))
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value
        if values:
            configs[resource] = values
        else:
            configs.pop(resource, None)
        self.changed_configs[resource] = None

    def _take_producer_ids(self, record: ProducerIdsRecord) -> None:
        self._producer_ids = ProducerIds(record.broker_id, record.broker_epoch, record.next_producer_id)

    def _quota(self, record: ClientQuotaRecord) -> None:
        quotas = self._section("quotas", self.image.quotas)
        entity = quota_entity(record)
        values = dict(quotas.get(entity, {}))
        if record.remove:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        if values:
            quotas[entity] = values
        else:
            quotas.pop(entity, None)

    def _acl(self, record: AccessControlEntryRecord) -> None:
        self._section("acls", self.image.acls)[record.id] = record

    def _remove_acl(self, record: RemoveAccessControlEntryRecord) -> None:
        if self._section("acls", self.image.acls).pop(record.id, None) is None:
            raise _corrupt(f"no access control entry has the id {id_text(record.id)}")

    def _scram(self, record: UserScramCredentialRecord) -> None:
        credentials = self._section("scram_credentials", self.image.scram_credentials)
        credentials[(record.mechanism, record.name)] = record

    def _remove_scram(self, record: RemoveUserScramCredentialRecord) -> None:
        credentials = self._section("scram_credentials", self.image.scram_credentials)
        credentials.pop((record.mechanism, record.name), None)

    def _token(self, record: DelegationTokenRecord) -> None:
        self._section("delegation_tokens", self.image.delegation_tokens)[record.token_id] = record

    def _remove_token(self, record: RemoveDelegationTokenRecord) -> None:
        self._section("delegation_tokens", self.image.delegation_tokens).pop(record.token_id, None)


def changed_partition(before: Partition, record: PartitionChangeRecord) -> Partition:
    """A partition after a change record. The leader epoch rises where a leader is named, as Kafka replays it."""
    leader_named = record.leader != _UNCHANGED_LEADER
    replicas = _or(record.replicas, before.replicas)
    return Partition(
        replicas=replicas,
        isr=_or(record.isr, before.isr),
        leader=record.leader if leader_named else before.leader,
        leader_epoch=before.leader_epoch + 1 if leader_named else before.leader_epoch,
        partition_epoch=before.partition_epoch + 1,
        directories=_directories(_or(record.directories, before.directories), replicas),
        removing=_or(record.removing_replicas, before.removing),
        adding=_or(record.adding_replicas, before.adding),
        leader_recovery_state=(
            record.leader_recovery_state if record.leader_recovery_state >= 0 else before.leader_recovery_state
        ),
        eligible=_or(record.eligible_leader_replicas, before.eligible),
        last_known_eligible=_or(record.last_known_elr, before.last_known_eligible),
    )


def _directories(named: tuple[bytes, ...], replicas: Sequence[int]) -> tuple[bytes, ...]:
    """Records from before KIP-858 name no directories; Kafka reads that as the zero id for each replica."""
    return named or (NO_ID,) * len(replicas)


def _or(new: list[V] | None, old: tuple[V, ...]) -> tuple[V, ...]:
    return old if new is None else tuple(new)


def quota_entity(record: ClientQuotaRecord) -> QuotaEntity:
    pairs = [(e.entity_type, e.entity_name) for e in record.entity]
    return tuple(sorted(pairs, key=lambda pair: pair[0]))


def _corrupt(text: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the metadata log contradicts itself: {text}")


_WITHOUT_EFFECT = ("NoOpRecord", "ZkMigrationStateRecord")
_HANDLERS: dict[type[Message], Callable[[Delta, Any], None]] = {
    AccessControlEntryRecord: Delta._acl,
    BrokerRegistrationChangeRecord: Delta._change_broker,
    ClearElrRecord: Delta._clear_eligible,
    ClientQuotaRecord: Delta._quota,
    ConfigRecord: Delta._config,
    DelegationTokenRecord: Delta._token,
    FeatureLevelRecord: Delta._feature,
    FenceBrokerRecord: Delta._fence_broker,
    PartitionChangeRecord: Delta._change_partition,
    PartitionRecord: Delta._partition,
    ProducerIdsRecord: Delta._take_producer_ids,
    RegisterBrokerRecord: Delta._register_broker,
    RegisterControllerRecord: Delta._register_controller,
    RemoveAccessControlEntryRecord: Delta._remove_acl,
    RemoveDelegationTokenRecord: Delta._remove_token,
    RemoveTopicRecord: Delta._remove_topic,
    RemoveUserScramCredentialRecord: Delta._remove_scram,
    TopicRecord: Delta._topic,
    UnfenceBrokerRecord: Delta._unfence_broker,
    UnregisterBrokerRecord: Delta._unregister_broker,
    UserScramCredentialRecord: Delta._scram,
}
