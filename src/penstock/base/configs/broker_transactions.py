"""Transactions and idempotent producers."""

from __future__ import annotations

from penstock.base.configs.define import ConfigDef, ConfigType, Dynamic, idle, table

BOOLEAN = ConfigType.BOOLEAN
INT = ConfigType.INT
SHORT = ConfigType.SHORT
CLUSTER_WIDE = Dynamic.CLUSTER_WIDE

TRANSACTIONS_CONFIGS = table(
    ConfigDef(
        "add.partitions.to.txn.retry.backoff.max.ms",
        INT,
        "100",
        low=0,
        doc="How long a partition's leader asks to add it to a transaction while the one before is being ended.",
    ),
    ConfigDef(
        "add.partitions.to.txn.retry.backoff.ms", INT, "20", low=1, doc="How long it waits before it asks again."
    ),
    ConfigDef(
        "producer.id.expiration.check.interval.ms",
        INT,
        "600000",
        low=1,
        internal=True,
        doc="How often partitions look for producers past their expiration.",
    ),
    ConfigDef(
        "producer.id.expiration.ms",
        INT,
        "86400000",
        low=1,
        dynamic=CLUSTER_WIDE,
        doc="How long a partition remembers an idempotent producer after its last write.",
    ),
    idle("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, "10000", low=1),
    ConfigDef(
        "transaction.max.timeout.ms", INT, "900000", low=1, doc="The longest timeout that a producer may ask for."
    ),
    idle("transaction.partition.verification.enable", BOOLEAN, "true", dynamic=CLUSTER_WIDE),
    ConfigDef(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        "3600000",
        low=1,
        doc="How often coordinators look for transactional ids past their expiration.",
    ),
    idle("transaction.state.log.load.buffer.size", INT, "5242880", low=1),
    ConfigDef(
        "transaction.state.log.min.isr", INT, "2", low=1, doc="min.insync.replicas of the topic of transaction states."
    ),
    ConfigDef(
        "transaction.state.log.num.partitions",
        INT,
        "50",
        low=1,
        doc="Partitions of the topic of transaction states; it may not change once the topic exists.",
    ),
    ConfigDef(
        "transaction.state.log.replication.factor",
        SHORT,
        "3",
        low=1,
        doc="Replicas of the topic of transaction states; a smaller cluster gets fewer.",
    ),
    ConfigDef(
        "transaction.state.log.segment.bytes",
        INT,
        "104857600",
        low=1,
        doc="The size of a segment of the topic of transaction states.",
    ),
    idle("transaction.two.phase.commit.enable", BOOLEAN, "false"),
    ConfigDef(
        "transactional.id.expiration.ms",
        INT,
        "604800000",
        low=1,
        doc="How long a transactional id is remembered after it was last used.",
    ),
)
