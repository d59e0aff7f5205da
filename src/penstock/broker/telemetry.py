"""Clients' own metrics (KIP-714): who is asked for what, how often, and what has come in.

Subscriptions are CLIENT_METRICS configurations of the metadata image. A client learns the union of those that match it;
what it pushes is checked, counted and its newest payload kept. Nobody reads inside a payload yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fastcrc.crc32 import iscsi

from penstock.base.configs.define import ResourceType
from penstock.base.configs.metrics import CLIENT_METRICS_CONFIGS
from penstock.base.configs.values import split_list
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.expressions import matches
from penstock.base.ids import NO_ID
from penstock.base.limits import TELEMETRY_BYTES_MAX, TELEMETRY_CLIENTS_MAX
from penstock.core.metadata.image import Image
from penstock.records.compression import decompress

ACCEPTED_CODECS = [4, 3, 1, 2]
"""zstd, lz4, gzip, snappy: the best first"""
_INTERVAL_TOLERANCE = 0.5
"""a push may come this share of its interval early: clients jitter"""


@dataclass(slots=True)
class Client:
    """What is known of one client instance."""

    subscription_id: int
    metrics: list[str]
    interval_ms: int
    asked_ms: int = -1
    pushed_ms: int = -1
    terminating: bool = False
    payload: bytes = b""
    pushes: int = 0


class Telemetry:
    def __init__(self, max_bytes: int = TELEMETRY_BYTES_MAX) -> None:
        self.max_bytes = max_bytes
        """of one push, before and after decompression; `telemetry.max.bytes`"""
        self.clients: dict[bytes, Client] = {}
        """by instance id, the one that was silent longest first"""
        self.pushed_bytes = 0

    def subscribe(self, instance: bytes, traits: Mapping[str, str], image: Image, now_ms: int) -> Client:
        """What this client is to push. Asking again too early is throttled."""
        known = self.clients.get(instance)
        metrics, interval_ms = _wanted(image, traits)
        subscription_id = iscsi(repr((metrics, interval_ms)).encode()) & 0x7FFFFFFF
        if known is not None and known.asked_ms >= 0 and known.subscription_id == subscription_id:
            _throttle(known.asked_ms, known.interval_ms, now_ms)
        client = Client(subscription_id, metrics, interval_ms, asked_ms=now_ms)
        if known is not None:
            client.pushed_ms, client.pushes, client.payload = known.pushed_ms, known.pushes, known.payload
        self._keep(instance, client)
        return client

    def push(
        self, instance: bytes, subscription_id: int, terminating: bool, codec: int, data: bytes, now_ms: int
    ) -> None:
        client = self.clients.get(instance)
        if instance == NO_ID or (client is not None and client.terminating):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the instance id is missing, or this client has said goodbye")
        if client is None or client.subscription_id != subscription_id:
            raise KafkaError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, "the subscription has changed: ask for it again")
        if not terminating and client.pushed_ms >= 0:
            _throttle(client.pushed_ms, client.interval_ms, now_ms)
        if codec not in (0, *ACCEPTED_CODECS):
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"codec {codec} is not accepted")
        if len(data) > self.max_bytes:
            raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE, f"{len(data)} bytes, the limit is {self.max_bytes}")
        client.payload = _expanded(codec, data, self.max_bytes)
        client.pushed_ms = now_ms
        client.terminating = terminating
        client.pushes += 1
        self.pushed_bytes += len(data)
        self._keep(instance, client)

    def _keep(self, instance: bytes, client: Client) -> None:
        self.clients.pop(instance, None)
        self.clients[instance] = client
        if len(self.clients) > TELEMETRY_CLIENTS_MAX:
            del self.clients[next(iter(self.clients))]


def _expanded(codec: int, data: bytes, max_bytes: int) -> bytes:
    try:
        return decompress(codec, data, max_bytes) if codec else data
    except KafkaError as fault:
        if fault.code is ErrorCode.MESSAGE_TOO_LARGE:
            raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE, fault.message) from None
        raise KafkaError(ErrorCode.INVALID_RECORD, fault.message) from None


def _throttle(last_ms: int, interval_ms: int, now_ms: int) -> None:
    if now_ms - last_ms < interval_ms * _INTERVAL_TOLERANCE:
        raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, f"the interval is {interval_ms} ms")


def _wanted(image: Image, traits: Mapping[str, str]) -> tuple[list[str], int]:
    """The metrics of all subscriptions that match, and the shortest interval among them."""
    default_ms = int(CLIENT_METRICS_CONFIGS["interval.ms"].default or 0)
    metrics: dict[str, None] = {}
    intervals = []
    for (kind, _), values in image.configs.items():
        if kind == ResourceType.CLIENT_METRICS and _matches(values.get("match", ""), traits):
            metrics.update(dict.fromkeys(split_list(values.get("metrics", ""))))
            intervals.append(int(values.get("interval.ms", default_ms)))
    names = ["*"] if "*" in metrics else list(metrics)
    return [name if name != "*" else "" for name in names], min(intervals, default=default_ms)


def _matches(match: str, traits: Mapping[str, str]) -> bool:
    for item in split_list(match):
        trait, _, pattern = (part.strip() for part in item.partition("="))
        if not matches(pattern, traits.get(trait, "")):
            return False
    return True
