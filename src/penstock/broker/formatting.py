"""A data directory's identity: formatting an empty one, reading one that exists, whether we or Apache Kafka made it.

`meta.properties` says which cluster, node and directory it is; `bootstrap.checkpoint` what a new cluster begins with;
the snapshot at offset 0 of the metadata log who its voters are. They are written in an order in which a crash leaves
either a directory that is formatted or one that is still taken for empty: `meta.properties` comes last.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.base.errors import DecodeError
from penstock.base.ids import id_from_text, id_text, random_id
from penstock.base.ports import Disk, Random
from penstock.broker.config import BrokerConfig, ConfigFault
from penstock.broker.properties import format_properties, parse_properties
from penstock.broker.quorum_config import initial_controllers, names_others
from penstock.core.metadata.image import (
    ELIGIBLE_LEADER_REPLICAS,
    GROUP_VERSION,
    METADATA_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
)
from penstock.core.metadata.versions import METADATA_VERSION_LATEST
from penstock.core.raft.snapshot import SnapshotId, decode_snapshot, encode_snapshot
from penstock.core.raft.voters import KRAFT_VERSION_LATEST, Voter, VoterEndpoint, VoterHistory, Voters
from penstock.protocol.generated.feature_level_record import FeatureLevelRecord
from penstock.protocol.message import Message

META = "meta.properties"
BOOTSTRAP = "bootstrap.checkpoint"
METADATA_DIRECTORY = "__cluster_metadata-0"
CLUSTER_ID = "penstock.cluster.id"
"""the cluster that a node belongs to, where nodes format their directories themselves"""
_META_VERSION = "1"


class Identity(NamedTuple):
    cluster_id: str
    node_id: int
    directory_id: bytes


def open_directory(
    disk: Disk,
    config: BrokerConfig,
    endpoints: tuple[VoterEndpoint, ...],
    random: Random,
    now_ms: int,
    cluster_id: str | None = None,
) -> Identity:
    """The identity of the data directory, which is formatted first where it is empty.

    `endpoints`: where this node's controller listens. `cluster_id`: which cluster it must be, None for any.
    """
    node_id, cluster_id = config.node_id, cluster_id or config.text(CLUSTER_ID) or None
    if disk.exists(META):
        identity = read_identity(disk, random)
        _check(identity, node_id, cluster_id)
        return identity
    if disk.exists(METADATA_DIRECTORY) and any(name.endswith(".log") for name in disk.list(METADATA_DIRECTORY)):
        raise ConfigFault(
            f"log.dirs: the directory has a metadata log but no {META}; restore that file, or name an empty directory"
        )
    initial = initial_controllers(config)
    if initial:
        me = next((one for one in initial if one.id == node_id), None)
        directory_id = me.directory_id if me is not None else random_id(random)
        identity = Identity(_required(cluster_id), node_id, directory_id)
        return format_member(disk, identity, initial if me is not None else (), now_ms)
    if not names_others(config, endpoints):
        return format_directory(disk, node_id, endpoints, random, now_ms, cluster_id)
    return format_member(disk, Identity(_required(cluster_id), node_id, random_id(random)), (), now_ms)


def format_directory(
    disk: Disk,
    node_id: int,
    endpoints: tuple[VoterEndpoint, ...],
    random: Random,
    now_ms: int,
    cluster_id: str | None = None,
) -> Identity:
    """As `kafka-storage format --standalone` does: a new cluster with this node as its only voter."""
    identity = Identity(cluster_id or id_text(random_id(random)), node_id, random_id(random))
    return format_member(disk, identity, (Voter(node_id, identity.directory_id, endpoints),), now_ms)


def format_member(disk: Disk, identity: Identity, voters: Voters, now_ms: int) -> Identity:
    """As `kafka-storage format --initial-controllers` does: each of a new cluster's voters begins with the same list.
    Without voters, as `--no-initial-controllers`: who votes is in the configuration, or is told by those who do."""
    disk.make_directory(METADATA_DIRECTORY)
    if voters:
        history = VoterHistory()
        history.begin(KRAFT_VERSION_LATEST, voters)
        first = f"{METADATA_DIRECTORY}/{SnapshotId(0, 0).file_name}"
        controls = history.control_records()
        disk.replace(first, encode_snapshot((), {}, controls, last_timestamp=now_ms, now_ms=now_ms))
    disk.replace(BOOTSTRAP, encode_snapshot(_first_records(), {}, now_ms=now_ms))
    _write_identity(disk, identity)
    return identity


def _required(cluster_id: str | None) -> str:
    if cluster_id is None:
        raise ConfigFault(
            f"log.dirs: the directory is empty and the node belongs to a cluster of several; set {CLUSTER_ID} to the "
            "same id on every node, or format the directory first"
        )
    return cluster_id


def _first_records() -> list[Message]:
    return [
        FeatureLevelRecord(name=METADATA_VERSION, feature_level=METADATA_VERSION_LATEST),
        FeatureLevelRecord(name=ELIGIBLE_LEADER_REPLICAS, feature_level=1),
        FeatureLevelRecord(name=GROUP_VERSION, feature_level=1),
        FeatureLevelRecord(name=SHARE_VERSION, feature_level=1),
        FeatureLevelRecord(name=STREAMS_VERSION, feature_level=1),
        FeatureLevelRecord(name=TRANSACTION_VERSION, feature_level=2),
    ]


def bootstrap_records(disk: Disk) -> list[Message]:
    """What a cluster begins with whose log is empty."""
    try:
        return decode_snapshot(disk.read(BOOTSTRAP), BOOTSTRAP).records
    except FileNotFoundError:
        return _first_records()
    except DecodeError as fault:
        raise ConfigFault(f"log.dirs: {fault}; format the directory anew, for no cluster has begun in it") from None


def read_identity(disk: Disk, random: Random) -> Identity:
    values = parse_properties(disk.read(META).decode("utf-8", "replace"))
    version = values.get("version")
    if version is None:
        raise ConfigFault(f"log.dirs: {META} is damaged (no version); restore it from a copy")
    if version != _META_VERSION:
        raise ConfigFault(
            f"log.dirs: {META} has version {version}, only {_META_VERSION} is known; "
            "a directory from before KRaft is migrated with Apache Kafka 3.9 first"
        )
    try:
        identity = Identity(
            values["cluster.id"],
            int(values["node.id"]),
            id_from_text(values["directory.id"]) if "directory.id" in values else random_id(random),
        )
    except (KeyError, ValueError) as problem:
        raise ConfigFault(f"log.dirs: {META} is damaged ({problem}); restore it from a copy") from None
    if "directory.id" not in values:
        _write_identity(disk, identity)
    return identity


def _write_identity(disk: Disk, identity: Identity) -> None:
    values = {
        "cluster.id": identity.cluster_id,
        "directory.id": id_text(identity.directory_id),
        "node.id": str(identity.node_id),
        "version": _META_VERSION,
    }
    disk.replace(META, format_properties(values).encode())


def _check(identity: Identity, node_id: int, cluster_id: str | None) -> None:
    if identity.node_id != node_id:
        raise ConfigFault(
            f"node.id: it is {node_id}, but the data in log.dirs is that of node {identity.node_id}; "
            f"set node.id={identity.node_id}, or name the directory of node {node_id}"
        )
    if cluster_id is not None and cluster_id != identity.cluster_id:
        raise ConfigFault(
            f"log.dirs: the data belongs to the cluster {identity.cluster_id}, not to {cluster_id}; "
            "name another directory, or leave the cluster id out"
        )
