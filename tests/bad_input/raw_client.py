"""A client that sends whatever it is told, byte by byte if need be, and says what came back."""

from __future__ import annotations

import socket
import time
from struct import pack, unpack
from typing import Any, Self

from penstock.protocol.frames import RequestHeader, decode_response_header, encode_request_header
from penstock.protocol.generated.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from penstock.protocol.generated.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.generated.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.protocol.generated.produce_response import PartitionProduceResponse
from penstock.protocol.message import Message
from penstock.protocol.registry import response_class
from penstock.records.builder import build_batch
from penstock.records.record import Record, read_records

NAMED_PRODUCE = 12
"""the last Produce version that names topics"""
NAMED_FETCH = 12


class Closed(Exception):
    """The broker has closed the connection."""


class RawClient:
    def __init__(self, address: tuple[str, int], timeout_s: float = 10.0) -> None:
        self._socket = socket.create_connection(address, timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        """As it is, without a length in front."""
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as gone:
            raise Closed from gone

    def send_frame(self, body: bytes) -> None:
        self.send(pack(">i", len(body)) + body)

    def receive(self) -> bytes:
        """One frame without its length."""
        (size,) = unpack(">i", self._take(4))
        return self._take(size)

    def call(self, request: Message, version: int, *, client_id: str | None = "raw") -> Any:
        """Send a request as it should be and decode the answer."""
        self._correlation_id += 1
        header = RequestHeader(request.API_KEY, version, self._correlation_id, client_id)
        self.send(request_frame(header, request.encode(version)))
        return self.answer(request.API_KEY, version)

    def answer(self, api_key: int, version: int) -> Any:
        body = self.receive()
        _, at = decode_response_header(body, api_key, version)
        return response_class(api_key).decode(memoryview(body)[at:], version)

    def is_closed(self, within_s: float = 5.0) -> bool:
        """Whether the broker closes the connection in time without another byte."""
        self._socket.settimeout(within_s)
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    def _take(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                chunk = self._socket.recv(min(size - len(data), 1 << 20))
            except ConnectionResetError as gone:
                raise Closed from gone
            if not chunk:
                raise Closed
            data += chunk
        return bytes(data)


def request_frame(header: RequestHeader, body: bytes) -> bytes:
    """A whole request: length, header, body."""
    head = encode_request_header(header)
    return pack(">i", len(head) + len(body)) + head + body


def frame_body(api_key: int, version: int, body: bytes, client_id: str | None = "raw") -> bytes:
    """A request without its length."""
    return request_frame(RequestHeader(api_key, version, 1, client_id), body)[4:]


def one_batch(value: bytes | None = b"value", key: bytes | None = b"key", **how: Any) -> bytearray:
    return build_batch([Record.of(key, value, time.time_ns() // 1_000_000)], **how)


def create_topic(client: RawClient, name: str, partitions: int = 1, **configs: str) -> int:
    """The error code. Configuration names with _ for every dot."""
    values = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=values)
    code: int = client.call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7).topics[0].error_code
    return code


def produce(
    client: RawClient,
    topic: str,
    records: bytes | bytearray | None,
    *,
    partition: int = 0,
    acks: int = 1,
    version: int = NAMED_PRODUCE,
) -> PartitionProduceResponse:
    """The one partition's answer."""
    answer = client.call(produce_request(topic, records, partition=partition, acks=acks), version)
    found: PartitionProduceResponse = answer.responses[0].partition_responses[0]
    return found


def produce_request(
    topic: str,
    records: bytes | bytearray | None,
    *,
    partition: int = 0,
    acks: int = 1,
    transactional: str | None = None,
) -> ProduceRequest:
    sent = None if records is None else bytes(records)
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=sent)])
    return ProduceRequest(transactional_id=transactional, acks=acks, timeout_ms=5_000, topic_data=[data])


def produce_one(client: RawClient, topic: str, value: bytes) -> int:
    """The offset that a good record got."""
    answer = produce(client, topic, one_batch(value))
    assert answer.error_code == 0, f"a good record was refused with {answer.error_code}"
    return answer.base_offset


def fetch_request(topic: str, offset: int, *, replica_id: int = -1, leader_epoch: int = -1) -> FetchRequest:
    partition = FetchPartition(
        partition=0, current_leader_epoch=leader_epoch, fetch_offset=offset, partition_max_bytes=1 << 20
    )
    return FetchRequest(
        replica_id=replica_id,
        max_wait_ms=1_000,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )


def fetch_one(client: RawClient, topic: str, offset: int) -> bytes | None:
    """The value of the record at this offset."""
    found = client.call(fetch_request(topic, offset), NAMED_FETCH).responses[0].partitions[0]
    assert found.error_code == 0, f"a good fetch was refused with {found.error_code}"
    return next(record.value for record in read_records(found.records) if record.offset == offset)
