"""`Admin`: topics, configurations, groups and offsets, in plain dataclasses. Every call waits for its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Literal, Self

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicCollection
from confluent_kafka import KafkaError as LibraryError
from confluent_kafka import TopicPartition as LibraryPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, OffsetSpec, ResourceType
from confluent_kafka.admin import NewPartitions as LibraryNewPartitions
from confluent_kafka.admin import NewTopic as LibraryNewTopic

from penstock.base.errors import ErrorCode
from penstock.base.ids import TopicPartition
from penstock.client.admin_types import (
    Broker,
    ClusterInfo,
    ConfigValue,
    GroupInfo,
    GroupListing,
    Member,
    NewTopic,
    PartitionInfo,
    PartitionLag,
    TopicInfo,
)
from penstock.client.errors import ClientError, GroupNotFound, OffsetsUnknown, from_exception, from_library
from penstock.client.settings import Config, Faults, bootstrap, log, properties, refused

ResourceKind = Literal["topic", "broker", "group"]
Spec = Literal["earliest", "latest", "max_timestamp"] | int
"""a place in a partition; a number is a timestamp in ms."""

_LEADERLESS = "it has no leader"
_WITHOUT_OFFSET: dict[int, str] = {
    ErrorCode.LEADER_NOT_AVAILABLE: _LEADERLESS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "its leader is just changing",
}
_SILENT = (LibraryError._TIMED_OUT, LibraryError._TRANSPORT)
_RESOURCES = {"topic": ResourceType.TOPIC, "broker": ResourceType.BROKER, "group": ResourceType.GROUP}
_SOURCES = {
    "DYNAMIC_TOPIC_CONFIG": "topic",
    "DYNAMIC_BROKER_CONFIG": "broker",
    "DYNAMIC_DEFAULT_BROKER_CONFIG": "broker-default",
    "STATIC_BROKER_CONFIG": "static",
    "DEFAULT_CONFIG": "default",
    "GROUP_CONFIG": "group",
}


class Admin:
    """`with Admin("localhost:9092") as admin: admin.create_topic("orders", partitions=6)`"""

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str] | None = None,
        *,
        timeout_s: float = 30.0,
        config: Config | None = None,
    ) -> None:
        self.bootstrap_servers = bootstrap(bootstrap_servers)
        self.timeout_s = timeout_s
        self.faults = Faults()
        try:
            self._client = AdminClient(
                properties(bootstrap_servers, {}, config) | {"error_cb": self.faults, "logger": log}
            )
        except (KafkaException, TypeError, ValueError) as exc:
            raise refused(exc, "make an admin client") from exc

    def cluster(self) -> ClusterInfo:
        found = self._get("describe the cluster", lambda: self._client.describe_cluster(**self._within))
        controller = found.controller
        return ClusterInfo(
            found.cluster_id,
            controller.id if controller is not None and controller.id >= 0 else None,
            sorted((_broker(n) for n in found.nodes), key=lambda b: b.id),
        )

    def topics(self, *, internal: bool = False) -> list[TopicInfo]:
        """All topics by name; the internal ones ("__...") only on request. Their ids are left to `describe_topics`."""
        found = self._call("list topics", lambda: self._client.list_topics(timeout=self.timeout_s)).topics
        listed = [
            TopicInfo(name, None, name.startswith("__"), [_partition(p) for _, p in sorted(t.partitions.items())])
            for name, t in sorted(found.items())
        ]
        return [t for t in listed if internal or not t.internal]

    def describe_topics(self, names: Iterable[str]) -> list[TopicInfo]:
        wanted = list(names)
        if not wanted:
            return []
        futures = self._call(
            "describe topics", lambda: self._client.describe_topics(TopicCollection(wanted), **self._within)
        )
        return [self._topic(self._result(futures[name], f"describe the topic {name!r}")) for name in wanted]

    def topic(self, name: str) -> TopicInfo:
        return self.describe_topics([name])[0]

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        config: Mapping[str, str] | None = None,
        *,
        dry_run: bool = False,
    ) -> None:
        self.create_topics([NewTopic(name, partitions, replication_factor, dict(config or {}))], dry_run=dry_run)

    def create_topics(self, topics: Iterable[NewTopic], *, dry_run: bool = False) -> None:
        wanted = [LibraryNewTopic(t.name, t.partitions, t.replication_factor, config=t.config) for t in topics]
        self._each(
            "create the topic", lambda: self._client.create_topics(wanted, validate_only=dry_run, **self._within)
        )

    def delete_topics(self, names: Iterable[str]) -> None:
        wanted = list(names)
        self._each("delete the topic", lambda: self._client.delete_topics(wanted, **self._within))

    def add_partitions(self, topic: str, total: int, *, dry_run: bool = False) -> None:
        """Raises the number of partitions to `total`; it can never be lowered."""
        wanted = [LibraryNewPartitions(topic, total)]
        self._each(
            "add partitions to", lambda: self._client.create_partitions(wanted, validate_only=dry_run, **self._within)
        )

    def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Drops records below these offsets (-1: all there are); the first offset left in each partition."""
        wanted = _theirs(before)
        futures = self._call("delete records", lambda: self._client.delete_records(wanted, **self._within))
        return {
            _ours(p): self._result(f, f"delete records of {_ours(p)}").low_watermark for p, f in sorted(futures.items())
        }

    def offsets(self, partitions: Iterable[TopicPartition], spec: Spec = "latest") -> dict[TopicPartition, int]:
        """The offset of each partition at a place: its start, its end, its youngest record, or a time (-1: none so
        late). `OffsetsUnknown` where a partition's leader is away, with what the others have told.
        """
        place = OffsetSpec.for_timestamp(spec) if isinstance(spec, int) else getattr(OffsetSpec, spec)()
        wanted = {LibraryPartition(*t): place for t in partitions}
        if not wanted:
            return {}
        futures = self._call("list offsets", lambda: self._client.list_offsets(wanted, **self._within))
        least = 0 if spec in ("earliest", "latest") else -1
        known: dict[TopicPartition, int] = {}
        silent: list[TopicPartition] = []
        causes: dict[TopicPartition, str] = {}
        for p, future in sorted(futures.items()):
            try:
                # Where the leader did not answer in time, the library has an offset too: -1001.
                offset = self._result(future, f"list offsets of {_ours(p)}").offset
            except ClientError as error:
                if error.code in _WITHOUT_OFFSET:
                    causes[_ours(p)] = _WITHOUT_OFFSET[error.code]
                elif error.code in _SILENT:
                    silent.append(_ours(p))
                else:
                    raise
                continue
            if offset >= least:
                known[_ours(p)] = offset
            else:
                silent.append(_ours(p))
        causes |= self._why_silent(silent)
        if causes:
            code = ErrorCode.LEADER_NOT_AVAILABLE
            raise OffsetsUnknown(dict(sorted(causes.items())), known, code=code, name=code.name)
        return known

    def _why_silent(self, partitions: list[TopicPartition]) -> dict[TopicPartition, str]:
        """Who should have answered, as any broker knows it."""
        if not partitions:
            return {}
        leaders = {
            TopicPartition(topic.name, one.partition): one.leader
            for topic in self.topics(internal=True)
            for one in topic.partitions
        }
        causes = {}
        for t in partitions:
            leader = leaders.get(t)
            by = f"its leader, broker {leader}, did not answer within {self.timeout_s:g} s"
            causes[t] = _LEADERLESS if leader is None else by
        return causes

    def config(self, kind: ResourceKind, name: str) -> list[ConfigValue]:
        """Every configuration of a topic, a broker (by id) or a group, by name."""
        resource = ConfigResource(_RESOURCES[kind], name)
        doing = f"read the configuration of the {kind} {name!r}"
        futures = self._call(doing, lambda: self._client.describe_configs([resource], **self._within))
        entries = self._result(futures[resource], doing)
        return [_config(entry) for _, entry in sorted(entries.items())]

    def alter_config(
        self,
        kind: ResourceKind,
        name: str,
        set: Mapping[str, str] | None = None,
        unset: Iterable[str] = (),
        *,
        dry_run: bool = False,
    ) -> None:
        """Sets and unsets some configurations; the others stay as they are. A broker of name "" is the cluster's
        default.
        """
        changes = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in (set or {}).items()
        ]
        changes += [ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE) for key in unset]
        resource = ConfigResource(_RESOURCES[kind], name, incremental_configs=changes)
        self._each(
            f"change the configuration of the {kind}",
            lambda: self._client.incremental_alter_configs([resource], validate_only=dry_run, **self._within),
            label=name,
        )

    def groups(self) -> list[GroupListing]:
        """An error where a broker does not tell which ones it coordinates: a list without those would look whole."""
        found = self._get("list groups", lambda: self._client.list_consumer_groups(**self._within))
        if found.errors:
            raise from_library(found.errors[0], "list groups")
        listed = [GroupListing(g.group_id, _word(g.state), _word(g.type)) for g in found.valid]
        return sorted(listed, key=lambda g: g.group)

    def group(self, name: str) -> GroupInfo:
        doing = f"describe the group {name!r}"
        futures = self._call(doing, lambda: self._client.describe_consumer_groups([name], **self._within))
        found = self._result(futures[name], doing)
        if _word(found.state) == "dead":
            raise GroupNotFound(f"cannot {doing}: there is no such group")
        members = sorted((_member(m) for m in found.members), key=lambda m: (m.client_id, m.member_id))
        coordinator = _broker(found.coordinator) if found.coordinator is not None else None
        return GroupInfo(
            name, _word(found.state), _word(found.type), found.partition_assignor or "", coordinator, members
        )

    def group_offsets(self, group: str) -> dict[TopicPartition, int]:
        """Everything the group has committed."""
        doing = f"read the offsets of the group {group!r}"
        request = [ConsumerGroupTopicPartitions(group)]
        futures = self._call(doing, lambda: self._client.list_consumer_group_offsets(request, **self._within))
        found = self._result(futures[group], doing).topic_partitions
        return {_ours(p): p.offset for p in sorted(found) if p.offset >= 0}

    def set_group_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Only while the group has no members."""
        doing = f"set offsets of the group {group!r}"
        request = [ConsumerGroupTopicPartitions(group, _theirs(offsets))]
        futures = self._call(doing, lambda: self._client.alter_consumer_group_offsets(request, **self._within))
        for partition in self._result(futures[group], doing).topic_partitions:
            if partition.error is not None:
                raise from_library(partition.error, f"{doing} in {_ours(partition)}")

    def delete_groups(self, groups: Iterable[str]) -> None:
        wanted = list(groups)
        self._each("delete the group", lambda: self._client.delete_consumer_groups(wanted, **self._within))

    def lag(self, group: str) -> list[PartitionLag]:
        """How far the group is behind, for every partition it has committed or is assigned. Topics that were deleted
        since are left out: there is nothing left to read in them."""
        owners = {t: m.member_id for m in self.group(group).members for t in m.assignment}
        committed = self.group_offsets(group)
        there = {topic.name for topic in self.topics(internal=True)}
        partitions = [t for t in sorted({**owners, **committed}) if t.topic in there]
        starts, ends = self.offsets(partitions, "earliest"), self.offsets(partitions, "latest")
        return [PartitionLag.between(t, committed.get(t), starts[t], ends[t], owners.get(t)) for t in partitions]

    def close(self) -> None:
        """The library closes its connections when the last reference goes."""
        self._client.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _within(self) -> dict[str, Any]:
        return {"request_timeout": self.timeout_s}

    def _topic(self, found: Any) -> TopicInfo:
        partitions = [
            PartitionInfo(
                p.id, p.leader.id if p.leader is not None else None, [n.id for n in p.replicas], [n.id for n in p.isr]
            )
            for p in sorted(found.partitions, key=lambda p: p.id)
        ]
        return TopicInfo(found.name, str(found.topic_id), bool(found.is_internal), partitions)

    def _each(self, doing: str, call: Callable[[], Mapping[Any, Future[Any]]], label: str | None = None) -> None:
        """Waits for all answers; then raises the first refusal, so that what could be done was done."""
        failure: ClientError | None = None
        for name, future in self._call(doing, call).items():
            try:
                self._result(future, f"{doing} {label if label is not None else str(name)!r}")
            except ClientError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def _get(self, doing: str, call: Callable[[], Future[Any]]) -> Any:
        return self._result(self._call(doing, call), doing)

    def _result(self, future: Future[Any], doing: str) -> Any:
        return self._call(doing, future.result)

    def _call(self, doing: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except KafkaException as exc:
            raise from_exception(exc, doing) from exc
        except (ValueError, TypeError) as exc:
            raise ClientError(f"cannot {doing}: {exc}") from exc


def _ours(partition: LibraryPartition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.partition)


def _theirs(offsets: Mapping[TopicPartition, int]) -> list[LibraryPartition]:
    return [LibraryPartition(t.topic, t.partition, offset) for t, offset in offsets.items()]


def _broker(node: Any) -> Broker:
    return Broker(node.id, node.host, node.port, node.rack)


def _partition(p: Any) -> PartitionInfo:
    return PartitionInfo(p.id, p.leader if p.leader >= 0 else None, list(p.replicas), list(p.isrs))


def _member(m: Any) -> Member:
    assigned = sorted(_ours(p) for p in m.assignment.topic_partitions) if m.assignment else []
    return Member(m.member_id, m.client_id, m.host, m.group_instance_id, assigned)


def _word(state: Any) -> str:
    return state.name.lower().replace("_", "-") if state is not None else "unknown"


def _config(entry: Any) -> ConfigValue:
    source = entry.source if hasattr(entry.source, "name") else None
    name = source.name if source is not None else _source_name(entry.source)
    return ConfigValue(
        entry.name, entry.value, _SOURCES.get(name, "unknown"), entry.is_default, entry.is_read_only, entry.is_sensitive
    )


def _source_name(number: int) -> str:
    from_number = {1: "DYNAMIC_TOPIC_CONFIG", 2: "DYNAMIC_BROKER_CONFIG", 3: "DYNAMIC_DEFAULT_BROKER_CONFIG"}
    from_number |= {4: "STATIC_BROKER_CONFIG", 5: "DEFAULT_CONFIG", 8: "GROUP_CONFIG"}
    return from_number.get(number, "UNKNOWN_CONFIG")
