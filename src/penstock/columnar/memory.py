"""Pieces of kernels: copying bytes, and reading numbers as they are in a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from penstock.columnar.compiler import inlined

_memcpy: Any = cgutils.raw_memcpy

BAD = -1
"""instead of a position: there is no such number there."""


@intrinsic
def _copy_bytes(typing_context: Any, target: Any, to: Any, source: Any, at: Any, size: Any) -> Any:
    """memcpy: `target[to:to + size] = source[at:at + size]`, without any check. A slice assignment of numba costs three
    times as much for a hundred bytes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target_type, _, source_type, _, _ = signature.args
        target, to, source, at, size = arguments
        write_to = builder.gep(context.make_array(target_type)(context, builder, target).data, [to])
        read_from = builder.gep(context.make_array(source_type)(context, builder, source).data, [at])
        _memcpy(builder, write_to, read_from, size, 1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate


copy_bytes: Any = _copy_bytes


@inlined
def read_i32(buf: Any, at: int) -> Any:
    raw = np.uint32(buf[at]) << 24 | np.uint32(buf[at + 1]) << 16 | np.uint32(buf[at + 2]) << 8 | np.uint32(buf[at + 3])
    return np.int64(np.int32(raw))


@inlined
def read_i64(buf: Any, at: int) -> Any:
    raw = np.uint64(0)
    for index in range(8):
        raw = raw << np.uint64(8) | np.uint64(buf[at + index])
    return np.int64(raw)


@inlined
def read_varint(buf: Any, at: int, end: int) -> tuple[Any, int]:
    """The raw (zigzag) value of up to 32 bits at `at` and where it ends, or BAD where none lies before `end`."""
    if at >= end:
        return np.int64(0), BAD
    byte = np.int64(buf[at])
    at += 1
    if byte < 128:
        return byte, at
    raw = byte & 127
    shift = 7
    while shift < 35:
        if at >= end:
            return np.int64(0), BAD
        byte = np.int64(buf[at])
        at += 1
        raw |= (byte & 127) << shift
        if byte < 128:
            return raw, at if raw >> 32 == 0 else BAD
        shift += 7
    return np.int64(0), BAD


@inlined
def read_varlong(buf: Any, at: int, end: int) -> tuple[Any, int]:
    """The signed value of up to 64 bits at `at` and where it ends, or BAD where none lies before `end`."""
    raw = np.uint64(0)
    shift = np.uint64(0)
    while shift < np.uint64(70):
        if at >= end:
            return np.int64(0), BAD
        byte = np.uint64(buf[at])
        at += 1
        raw |= (byte & np.uint64(127)) << shift
        if byte < np.uint64(128):
            if shift == np.uint64(63) and byte > np.uint64(1):
                return np.int64(0), BAD
            return np.int64(raw >> np.uint64(1)) ^ -np.int64(raw & np.uint64(1)), at
        shift += np.uint64(7)
    return np.int64(0), BAD


@inlined
def signed(raw: Any) -> Any:
    return (raw >> 1) ^ -(raw & 1)
