from __future__ import annotations

import pytest

from penstock.base.limits import RECEIVE_BUFFER_BYTES
from penstock.wire.errors import Violation
from penstock.wire.inbox import Inbox


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def test_several_frames_in_one_read_come_out_in_order() -> None:
    assert Inbox(1000).feed(framed(b"first") + framed(b"second") + framed(b"third")) == [b"first", b"second", b"third"]


@pytest.mark.parametrize("step", [1, 2, 3, 7, 100])
def test_frames_come_out_whole_however_the_bytes_are_cut(step: int) -> None:
    inbox = Inbox(10_000)
    bodies = [b"abcd", bytes(range(256)) * 9, b"efgh" * 5]
    stream = b"".join(framed(body) for body in bodies)
    out = [frame for at in range(0, len(stream), step) for frame in inbox.feed(stream[at : at + step])]
    assert out == bodies


def test_a_large_frame_is_received_into_a_buffer_of_its_own_size() -> None:
    inbox = Inbox(10_000_000)
    body = b"x" * 1_000_000
    assert inbox.feed(framed(body)[:100]) == []
    assert len(inbox.buffer()) == len(body) - 96
    assert inbox.feed(framed(body)[100:] + framed(b"next")) == [body, b"next"]


def test_memory_of_the_callers_own_is_filled_to_its_last_byte() -> None:
    sizes = []

    def dirty(size: int) -> memoryview:
        sizes.append(size)
        return memoryview(bytearray(b"?" * size))

    body = b"x" * 1_000_000
    assert Inbox(10_000_000, dirty).feed(framed(body) + framed(b"next")) == [body, b"next"]
    assert sizes == [len(body)]


def test_a_frame_of_exactly_the_small_buffer_is_whole() -> None:
    body = b"y" * (RECEIVE_BUFFER_BYTES - 4)
    assert Inbox(10_000_000).feed(framed(body)) == [body]


@pytest.mark.parametrize("length", [-1, 0, 3, 1001, 2**31 - 1])
def test_a_length_beyond_the_limit_is_refused_before_anything_is_allocated(length: int) -> None:
    with pytest.raises(Violation):
        Inbox(1000).feed(length.to_bytes(4, "big", signed=True))
