"""Hostile frames against the decoders in this process: refused or read, at a cost in proportion to their size."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

from penstock.base.errors import DecodeError, KafkaError
from penstock.core.log.config import LogConfig
from penstock.core.log.validate import check_client_batch, check_each_record
from penstock.protocol.frames import decode_request_header
from penstock.protocol.hot_fetch import decode_fetch_request
from penstock.protocol.hot_produce import decode_produce_request
from penstock.protocol.message import Message
from penstock.protocol.registry import APIS, request_class
from tests.fuzz.report import Finding
from tests.fuzz.requests import Maker

BYTES_PER_BYTE = 4
CONSTANT_BYTES = 512 * 1024
ELEMENTS_BYTES = 64
"""for each byte of a frame of more than a few kilobytes: an array of short strings, all of which are there, takes that
much in Python's objects"""
SLOW_S = 0.5
KEYED = LogConfig.from_values({"cleanup.policy": "compact"})


def fuzz_decoders(seed: int, seconds: float, frames_max: int) -> int:
    """How many frames were tried; Finding where one is not dealt with as it should."""
    maker = Maker(seed, {})
    until = time.monotonic() + seconds
    tracemalloc.start()
    tried = 0
    try:
        while tried < frames_max and time.monotonic() < until:
            frame = maker.frame()
            _try(frame, _decode, max(BYTES_PER_BYTE * len(frame) + CONSTANT_BYTES, ELEMENTS_BYTES * len(frame)))
            _try(frame, _read_back, 3 * ELEMENTS_BYTES * len(frame) + CONSTANT_BYTES)
            batch = maker.batch()
            _try(batch, _check_batch, 200 * len(batch) + 16 * CONSTANT_BYTES)  # it may rightly expand
            tried += 1
    finally:
        tracemalloc.stop()
    return tried


def _try(data: bytes, work: Callable[[bytes], object], limit_bytes: int) -> None:
    tracemalloc.reset_peak()
    before_bytes, _ = tracemalloc.get_traced_memory()
    began = time.monotonic()
    try:
        work(data)
    except (DecodeError, KafkaError):
        pass
    except Exception as fault:
        raise Finding(f"an unforeseen {fault!r}", [data]) from fault
    took_s = time.monotonic() - began
    _, peak_bytes = tracemalloc.get_traced_memory()
    if peak_bytes - before_bytes > limit_bytes:
        raise Finding(f"{peak_bytes - before_bytes} bytes of memory, {limit_bytes} are allowed", [data])
    if took_s > SLOW_S:
        raise Finding(f"it took {took_s:.1f} s", [data])


def _decode(frame: bytes) -> tuple[Message, int] | None:
    """As a broker does; the hot path by both of its decoders."""
    body = frame[4:]
    header, at = decode_request_header(body)
    api = APIS.get(header.api_key)
    if api is None or not api.min_version <= header.api_version <= api.max_version:
        return None
    if header.api_key == 0:
        decode_produce_request(body, at, header.api_version)
    elif header.api_key == 1:
        decode_fetch_request(body, at, header.api_version)
    return request_class(header.api_key).decode(memoryview(body)[at:], header.api_version), header.api_version


def _read_back(frame: bytes) -> None:
    """What was understood is written again and reads the same."""
    decoded = _decode(frame)
    if decoded is not None:
        request, version = decoded
        assert type(request).decode(request.encode(version), version) == request


def _check_batch(batch: bytes) -> None:
    now_ms = time.time_ns() // 1_000_000
    check_client_batch(batch, 0, len(batch), KEYED, now_ms, "fuzz")
    check_each_record(batch, 0, KEYED, now_ms, "fuzz")
