"""THE TABLE: every API that is served, where it is handled, and what it needs to be allowed.

`served` is what brokers offer to clients, `controller_served` what controllers offer on their own listener, to brokers,
to each other and to tools. What is `forwarded` is decided by the active controller, whichever node is asked.
ApiVersions is answered from the tables: what is not finished does not stand here. Produce is advertised from version 0,
though served from 3: librdkafka looks at the old versions to find out whether compression works.
"""

from __future__ import annotations

from penstock.broker.network.table import Row, Table
from penstock.core.security.acl import Acl, Operation, Resource

_READ_TOPIC = Acl(Operation.READ, Resource.TOPIC)
_WRITE_TOPIC = Acl(Operation.WRITE, Resource.TOPIC)
_DESCRIBE_TOPIC = Acl(Operation.DESCRIBE, Resource.TOPIC)
_CREATE_TOPIC = Acl(Operation.CREATE, Resource.TOPIC)
_DELETE_TOPIC = Acl(Operation.DELETE, Resource.TOPIC)
_ALTER_TOPIC = Acl(Operation.ALTER, Resource.TOPIC)
_READ_GROUP = Acl(Operation.READ, Resource.GROUP)
_DESCRIBE_GROUP = Acl(Operation.DESCRIBE, Resource.GROUP)
_DELETE_GROUP = Acl(Operation.DELETE, Resource.GROUP)
_DESCRIBE_CLUSTER = Acl(Operation.DESCRIBE, Resource.CLUSTER)
_DESCRIBE_CONFIGS = Acl(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER)
_ALTER_CLUSTER = Acl(Operation.ALTER, Resource.CLUSTER)
_ALTER_CONFIGS = Acl(Operation.ALTER_CONFIGS, Resource.CLUSTER)
_CLUSTER_ACTION = Acl(Operation.CLUSTER_ACTION, Resource.CLUSTER)
_IDEMPOTENT_WRITE = Acl(Operation.IDEMPOTENT_WRITE, Resource.CLUSTER)
_WRITE_TRANSACTION = Acl(Operation.WRITE, Resource.TRANSACTIONAL_ID)
_DESCRIBE_TRANSACTION = Acl(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID)


def served() -> Table:
    """A fresh table, for the counters in its rows belong to one broker."""
    return Table(
        [
            Row(0, "data.produce", _WRITE_TOPIC, raw=True, overlaps=True, advertised_from=0),
            Row(1, "data.fetch", _READ_TOPIC, raw=True, overlaps=True),
            Row(2, "data.list_offsets", _DESCRIBE_TOPIC),
            Row(3, "topics.metadata", _DESCRIBE_TOPIC),
            Row(8, "groups.offset_commit", _READ_GROUP, overlaps=True),
            Row(9, "groups.offset_fetch", _DESCRIBE_GROUP),
            Row(10, "groups.find_coordinator", _DESCRIBE_GROUP),
            Row(11, "groups.join_group", _READ_GROUP),
            Row(12, "groups.heartbeat", _READ_GROUP),
            Row(13, "groups.leave_group", _READ_GROUP),
            Row(14, "groups.sync_group", _READ_GROUP),
            Row(15, "groups.describe_groups", _DESCRIBE_GROUP),
            Row(16, "groups.list_groups", _DESCRIBE_GROUP),
            Row(18, "cluster.api_versions", None),
            Row(19, "topics.create_topics", _CREATE_TOPIC, forwarded=True),
            Row(20, "topics.delete_topics", _DELETE_TOPIC, forwarded=True),
            Row(21, "data.delete_records", _DELETE_TOPIC),
            Row(22, "data.init_producer_id", _IDEMPOTENT_WRITE),
            Row(23, "data.offset_for_leader_epoch", _DESCRIBE_TOPIC),
            Row(24, "transactions.add_partitions_to_txn", _WRITE_TRANSACTION, overlaps=True),
            Row(25, "transactions.add_offsets_to_txn", _WRITE_TRANSACTION),
            Row(26, "transactions.end_txn", _WRITE_TRANSACTION),
            Row(27, "transactions.write_txn_markers", _ALTER_CLUSTER, overlaps=True),
            Row(28, "transactions.txn_offset_commit", _WRITE_TRANSACTION),
            Row(32, "configs.describe_configs", _DESCRIBE_CONFIGS),
            Row(33, "configs.alter_configs", _ALTER_CONFIGS, forwarded=True),
            Row(35, "cluster.describe_log_dirs", _DESCRIBE_CLUSTER),
            Row(37, "topics.create_partitions", _ALTER_TOPIC, forwarded=True),
            Row(42, "groups.delete_groups", _DELETE_GROUP),
            Row(43, "cluster.elect_leaders", _ALTER_CLUSTER, forwarded=True),
            Row(44, "configs.incremental_alter_configs", _ALTER_CONFIGS, forwarded=True),
            Row(45, "cluster.alter_partition_reassignments", _ALTER_CLUSTER, forwarded=True),
            Row(46, "cluster.list_partition_reassignments", _DESCRIBE_CLUSTER, forwarded=True),
            Row(47, "groups.offset_delete", _DELETE_GROUP),
            Row(55, "quorum.describe_quorum", _DESCRIBE_CLUSTER, forwarded=True),
            Row(57, "cluster.update_features", _ALTER_CLUSTER, forwarded=True),
            Row(60, "cluster.describe_cluster", None),
            Row(61, "data.describe_producers", _READ_TOPIC),
            Row(64, "cluster.unregister_broker", _ALTER_CLUSTER, forwarded=True),
            Row(65, "transactions.describe_transactions", _DESCRIBE_TRANSACTION),
            Row(66, "transactions.list_transactions", _DESCRIBE_TRANSACTION),
            Row(68, "groups.consumer_group_heartbeat", _READ_GROUP),
            Row(69, "groups.consumer_group_describe", _DESCRIBE_GROUP),
            Row(71, "cluster.get_telemetry_subscriptions", None),
            Row(72, "cluster.push_telemetry", None),
            Row(74, "configs.list_config_resources", _DESCRIBE_CONFIGS),
            Row(75, "topics.describe_topic_partitions", _DESCRIBE_TOPIC),
            Row(76, "share.share_group_heartbeat", _READ_GROUP),
            Row(77, "share.share_group_describe", _DESCRIBE_GROUP),
            Row(78, "share.share_fetch", _READ_GROUP, raw=True, overlaps=True),
            Row(79, "share.share_acknowledge", _READ_GROUP, overlaps=True),
            Row(80, "quorum.add_raft_voter", _ALTER_CLUSTER, forwarded=True),
            Row(81, "quorum.remove_raft_voter", _ALTER_CLUSTER, forwarded=True),
            Row(83, "share.initialize_share_group_state", _CLUSTER_ACTION, overlaps=True),
            Row(84, "share.read_share_group_state", _CLUSTER_ACTION, overlaps=True),
            Row(85, "share.write_share_group_state", _CLUSTER_ACTION, overlaps=True),
            Row(86, "share.delete_share_group_state", _CLUSTER_ACTION, overlaps=True),
            Row(87, "share.read_share_group_state_summary", _CLUSTER_ACTION, overlaps=True),
            Row(88, "groups.streams_group_heartbeat", _READ_GROUP),
            Row(89, "groups.streams_group_describe", _DESCRIBE_GROUP),
            Row(90, "share.describe_share_group_offsets", _DESCRIBE_GROUP),
            Row(91, "share.alter_share_group_offsets", _READ_GROUP),
            Row(92, "share.delete_share_group_offsets", _DELETE_GROUP),
        ]
    )


def controller_served() -> Table:
    return Table(
        [
            Row(1, "quorum.fetch", _CLUSTER_ACTION, overlaps=True),
            Row(18, "cluster.api_versions", None),
            Row(19, "topics.create_topics", _CREATE_TOPIC, forwarded=True),
            Row(20, "topics.delete_topics", _DELETE_TOPIC, forwarded=True),
            Row(32, "configs.describe_configs", _DESCRIBE_CONFIGS),
            Row(33, "configs.alter_configs", _ALTER_CONFIGS, forwarded=True),
            Row(37, "topics.create_partitions", _ALTER_TOPIC, forwarded=True),
            Row(43, "cluster.elect_leaders", _ALTER_CLUSTER, forwarded=True),
            Row(44, "configs.incremental_alter_configs", _ALTER_CONFIGS, forwarded=True),
            Row(45, "cluster.alter_partition_reassignments", _ALTER_CLUSTER, forwarded=True),
            Row(46, "cluster.list_partition_reassignments", _DESCRIBE_CLUSTER, forwarded=True),
            Row(52, "quorum.vote", _CLUSTER_ACTION),
            Row(53, "quorum.begin_quorum_epoch", _CLUSTER_ACTION),
            Row(54, "quorum.end_quorum_epoch", _CLUSTER_ACTION),
            Row(55, "quorum.describe_quorum", _DESCRIBE_CLUSTER, forwarded=True),
            Row(56, "controlling.alter_partition", _CLUSTER_ACTION),
            Row(57, "cluster.update_features", _ALTER_CLUSTER, forwarded=True),
            Row(58, "controlling.envelope", _CLUSTER_ACTION),
            Row(59, "quorum.fetch_snapshot", _CLUSTER_ACTION),
            Row(60, "cluster.describe_cluster", None),
            Row(62, "controlling.broker_registration", _CLUSTER_ACTION),
            Row(63, "controlling.broker_heartbeat", _CLUSTER_ACTION),
            Row(64, "cluster.unregister_broker", _ALTER_CLUSTER, forwarded=True),
            Row(67, "controlling.allocate_producer_ids", _CLUSTER_ACTION),
            Row(70, "controlling.controller_registration", _CLUSTER_ACTION),
            Row(73, "controlling.assign_replicas_to_dirs", _CLUSTER_ACTION),
            Row(80, "quorum.add_raft_voter", _ALTER_CLUSTER, forwarded=True),
            Row(81, "quorum.remove_raft_voter", _ALTER_CLUSTER, forwarded=True),
            Row(82, "quorum.update_raft_voter", _CLUSTER_ACTION),
        ]
    )
