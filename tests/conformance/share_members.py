"""A member of a share group at the level of the protocol: fetches, acknowledgements and epochs as a test says them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Self

from penstock.base.errors import ErrorCode
from penstock.broker.share_messages import initialize_request
from penstock.core.share.requests import Initialize, ShareKey
from penstock.protocol.generated import share_acknowledge_request as acknowledging
from penstock.protocol.generated import share_fetch_request as fetching
from penstock.protocol.generated.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.generated.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.generated.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from penstock.records.batch import iterate
from penstock.records.builder import build_batch
from penstock.records.record import Record, read_records
from penstock.testing import Cluster
from tests.bad_input.raw_client import RawClient, produce

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
VERSION = 2
Ack = tuple[int, int, Sequence[int]]
_GROUP_RESOURCE = 32
_SHARE_KEY = 2
_LOAD_LIMIT_S = 40
_COMING = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


def address_of(bootstrap_servers: str) -> tuple[str, int]:
    host, _, port = bootstrap_servers.split(",")[0].rpartition(":")
    return host, int(port)


def topic_for(client: RawClient, name: str, *groups: str, start: int = 0, copies: int = 1) -> bytes:
    """A new topic of one partition, and where these groups begin it."""
    wanted = CreatableTopic(name=name, num_partitions=1, replication_factor=copies)
    topic_id: bytes = client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7).topics[0].topic_id
    for group in groups:
        begin(client, ShareKey(group, topic_id, 0), start)
    return topic_id


def begin(client: RawClient, key: ShareKey, start: int, state_epoch: int = 1) -> None:
    """What the group's coordinator does for a partition that is new to the group."""
    request = FindCoordinatorRequest(key_type=_SHARE_KEY, coordinator_keys=[str(key)])
    deadline = time.monotonic() + _LOAD_LIMIT_S
    while time.monotonic() < deadline:
        [found] = client.call(request, 6).coordinators
        if found.error_code:
            continue
        with RawClient((found.host, found.port)) as coordinator:
            [topic] = coordinator.call(initialize_request(Initialize(key, state_epoch, start)), 0).results
        code = topic.partitions[0].error_code
        if code == 0:
            return
        assert code in _COMING, code
    raise AssertionError("the share coordinator did not load")


def configure(client: RawClient, group: str, **values: str) -> None:
    configs = [AlterableConfig(name=name, config_operation=0, value=value) for name, value in values.items()]
    resource = AlterConfigsResource(resource_type=_GROUP_RESOURCE, resource_name=group, configs=configs)
    [answer] = client.call(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    assert answer.error_code == 0, answer


class Member:
    """One member on a connection of its own, of one partition."""

    def __init__(self, address: tuple[str, int], group: str, member: str, topic_id: bytes, partition: int = 0) -> None:
        self.client = RawClient(address)
        self.group, self.member, self.topic_id, self.partition = group, member, topic_id, partition
        self.epoch = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def request(self, acks: Sequence[Ack] = (), **fields: Any) -> fetching.ShareFetchRequest:
        batches = [
            fetching.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types))
            for first, last, types in acks
        ]
        one = fetching.FetchPartition(partition_index=self.partition, acknowledgement_batches=batches)
        told = {
            "group_id": self.group,
            "member_id": self.member,
            "share_session_epoch": self.epoch,
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            "topics": [fetching.FetchTopic(topic_id=self.topic_id, partitions=[one])],
        }
        return fetching.ShareFetchRequest(**{**told, **fields})

    def call(self, acks: Sequence[Ack] = (), **fields: Any) -> Any:
        """The whole answer to a share fetch."""
        answer = self.client.call(self.request(acks, **fields), VERSION)
        if answer.error_code == 0:
            self.epoch += 1
        return answer

    def fetch(self, acks: Sequence[Ack] = (), **fields: Any) -> list[tuple[int, int, int]]:
        """What was acquired: (first offset, last offset, delivery count)."""
        row = self.row(acks, **fields)
        return [] if row is None else ranges(row)

    def row(self, acks: Sequence[Ack] = (), **fields: Any) -> Any:
        """What is told of the partition; None where nothing is."""
        answer = self.call(acks, **fields)
        assert answer.error_code == 0, answer.error_message
        rows = [row for topic in answer.responses for row in topic.partitions]
        return rows[0] if rows else None

    def acknowledge(self, *acks: Ack, **fields: Any) -> int:
        """The error of the partition, or of the whole request."""
        batches = [
            acknowledging.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types))
            for first, last, types in acks
        ]
        one = acknowledging.AcknowledgePartition(partition_index=self.partition, acknowledgement_batches=batches)
        told = {
            "group_id": self.group,
            "member_id": self.member,
            "share_session_epoch": self.epoch,
            "topics": [acknowledging.AcknowledgeTopic(topic_id=self.topic_id, partitions=[one])],
        }
        answer = self.client.call(acknowledging.ShareAcknowledgeRequest(**{**told, **fields}), VERSION)
        if answer.error_code:
            return int(answer.error_code)
        self.epoch += 1
        return int(answer.responses[0].partitions[0].error_code) if answer.responses else 0


class Place:
    """One topic and one group of its own."""

    def __init__(self, cluster: Cluster, name: str, *, copies: int = 1) -> None:
        self.cluster, self.name, self.group = cluster, name, f"{name}-group"
        self.client = RawClient(address_of(cluster.bootstrap_servers))
        self.topic_id = topic_for(self.client, name, self.group, copies=copies)

    def write(self, *texts: str) -> None:
        """One batch."""
        self.write_records(*(Record.of(None, text.encode(), time.time_ns() // 1_000_000) for text in texts))

    def write_records(self, *records: Record) -> None:
        assert produce(self.client, self.name, build_batch(records)).error_code == 0

    def member(self, name: str, group: str | None = None, *, at: int = 1) -> Member:
        """On a connection to the node `at`."""
        address = address_of(self.cluster.bootstrap_servers.split(",")[at - 1])
        return Member(address, group or self.group, name, self.topic_id)


def ranges(row: Any) -> list[tuple[int, int, int]]:
    assert row.error_code == 0, (row.error_code, row.error_message)
    return [(one.first_offset, one.last_offset, one.delivery_count) for one in row.acquired_records]


def values(row: Any) -> list[bytes]:
    """The records of an answer that were acquired."""
    acquired = ranges(row)
    out = []
    for at, header in iterate(row.records):
        for record in read_records(bytes(row.records[at : at + header.size_bytes])):
            if any(first <= record.offset <= last for first, last, _ in acquired):
                out.append(record.value)
    return out
