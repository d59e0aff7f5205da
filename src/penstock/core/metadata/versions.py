"""In which version a metadata record is written, so that every node of the cluster can read it.

The levels are those of Kafka 4.3: a record takes the newest version that the finalized features allow, except that a
change of a broker's registration takes the oldest that can say it.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.core.metadata.image import METADATA_VERSION
from penstock.protocol.generated.broker_registration_change_record import BrokerRegistrationChangeRecord
from penstock.protocol.generated.partition_change_record import PartitionChangeRecord
from penstock.protocol.generated.partition_record import PartitionRecord
from penstock.protocol.generated.register_broker_record import RegisterBrokerRecord
from penstock.protocol.message import Message

METADATA_VERSION_MIN = 7
"""3.3-IV3, the oldest level that Kafka 4.3 can run at."""
METADATA_VERSION_LATEST = 30
"""4.3-IV0, at which new directories are formatted."""
_ZK_MIGRATION_FROM = 8
_DIRECTORIES_FROM = 17
"""3.7-IV2: records name the log directories of replicas (KIP-858)."""
_ELIGIBLE_REPLICAS_FROM = 23
"""4.0-IV1: records may name eligible leader replicas (KIP-966)."""
CORDONED_DIRECTORIES_FROM = 30
"""4.3-IV0: brokers may tell which of their directories take no new replicas (KIP-1066)."""


def record_version(record: Message, features: Mapping[str, int]) -> int:
    level = features.get(METADATA_VERSION, METADATA_VERSION_LATEST)
    if isinstance(record, PartitionRecord | PartitionChangeRecord):
        return (level >= _DIRECTORIES_FROM) + (level >= _ELIGIBLE_REPLICAS_FROM)
    if isinstance(record, RegisterBrokerRecord):
        steps = (_ZK_MIGRATION_FROM, _DIRECTORIES_FROM, CORDONED_DIRECTORIES_FROM)
        return 1 + sum(level >= step for step in steps)
    if isinstance(record, BrokerRegistrationChangeRecord):
        return _change_version(record)
    return record.MAX_VERSION


def _change_version(record: BrokerRegistrationChangeRecord) -> int:
    if record.cordoned_log_dirs is not None:
        return 3
    if record.log_dirs:
        return 2
    return 1 if record.in_controlled_shutdown else 0
