"""One client connection: bytes to frames, frames to the session, answers back in order.

Receiving: while no frame's length is known, every connection reads into the listener's one scratch buffer. Once it is
known, the rest of the frame is read in place into a buffer of its own. No memory is committed because a length was
declared: a buffer in the heap has its full size only once 32 KiB of the frame are there, and beyond 1 MiB it is an
anonymous mapping, which commits what arrives. Only what is committed counts against the budget.

Answering: requests start in order; those that wait keep their place in `_replies`, and what is done leaves from its
head. A request whose row is not `overlaps` holds back the ones behind it until it is answered.
"""

from __future__ import annotations

import asyncio
import mmap
from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, Protocol, cast

from penstock.base.errors import DecodeError
from penstock.base.limits import (
    FRAME_IN_HEAP_BYTES_MAX,
    RECEIVE_BUFFER_BYTES,
    REQUESTS_IN_FLIGHT_PER_CONNECTION_MAX,
    WRITE_BUFFER_BYTES_MAX,
)
from penstock.base.ports import Buffer, Clock
from penstock.base.slices import Slice
from penstock.broker.network.budget import Budget
from penstock.broker.network.reply import CloseConnection, Parts, Reply
from penstock.broker.network.session import Session

if TYPE_CHECKING:
    from penstock.wire.within import Arrival

_LENGTH = Struct(">i")
_FIRST_BYTES = RECEIVE_BUFFER_BYTES // 2
"""of a frame: when these are there, its buffer may have its full size. Half of what one read can bring, so that a
frame in full flow is never moved"""

Frame = bytearray | memoryview
"""a request without its length; a memoryview where it lies in a mapping of its own"""


class Entrance(Protocol):
    """What a connection needs of the door that it came in by."""

    clock: Clock
    budget: Budget
    scratch: memoryview
    request_bytes_max: int
    tick_ms: int

    def admit(self, connection: Connection, transport: asyncio.Transport) -> Session | None: ...

    def left(self, connection: Connection) -> None: ...

    def refused(self, connection: Connection, fault: BaseException) -> None: ...


class Connection(asyncio.BufferedProtocol):
    def __init__(self, door: Entrance) -> None:
        self._door = door
        self._transport: asyncio.Transport | None = None
        self.session: Session | None = None
        self._prefix = b""
        """0-3 bytes of a length whose rest has not arrived"""
        self._body: Frame | None = None
        self._rest: memoryview | None = None
        """the part of `_body` that is still to be received"""
        self._frame_bytes = 0
        """what the frame that is being received declares; `_body` may be shorter at first"""
        self._charged_bytes = 0
        """what it has taken of the budget"""
        self._arrival: Arrival | None = None
        self._backlog: deque[Frame] = deque()
        """complete frames that may not start yet"""
        self._replies: deque[Reply] = deque()
        """answers owed, oldest first. Invariant: its head is not done."""
        self._barrier = False
        """the newest reply holds back what comes behind it"""
        self._pauses = 0
        """reasons not to read; reading goes on at 0"""
        self.waits_for_budget = False
        self._too_many = False
        self._starting = False
        """inside `session.handle`: an answer that comes due there must not start a later request"""
        self.last_active_ms = 0
        self.frame_since_ms = 0
        """when the frame that is being received began; 0 while there is none"""

    @property
    def received_bytes(self) -> int:
        """of the frame that is being received"""
        return 0 if self._body is None or self._rest is None else len(self._body) - len(self._rest)

    @property
    def in_frame(self) -> bool:
        return self._body is not None

    @property
    def held_back(self) -> bool:
        """it does not read, so its peer cannot be blamed for a frame that takes long"""
        return self._pauses > 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        from penstock.wire.within import arrival, unpace  # noqa: PLC0415 a broker starts without any of the client

        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES_MAX)
        connected = transport.get_extra_info("socket")
        unpace(connected)
        self._arrival = arrival(connected)
        self.last_active_ms = self._door.clock.monotonic_ms()
        self.session = self._door.admit(self, self._transport)
        if self.session is None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        held_bytes = self._charged_bytes + sum(len(body) for body in self._backlog)
        self._backlog.clear()
        self._arrival = None  # another connection may have its descriptor
        self._drop_body()
        self._door.budget.forget(self)
        self._door.budget.give_back(held_bytes)
        for reply in self._replies:
            if not reply.done and reply.abandon is not None:
                reply.abandon()
        self._replies.clear()
        if self.session is not None:
            self.session.close()
            self._door.left(self)
        self._transport = None

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._door.scratch if self._rest is None else self._rest

    def buffer_updated(self, nbytes: int) -> None:
        self.last_active_ms = self._door.tick_ms
        rest = self._rest
        if rest is None:
            self._parse(nbytes)
            return
        body = self._body
        assert body is not None
        if type(body) is memoryview:
            self._charge(self._charged_bytes + nbytes)
        if nbytes < len(rest):
            self._rest = rest[nbytes:]
            self._tell_missing(len(self._rest))
            self._ask_budget()
        elif len(body) < self._frame_bytes:
            self._allocate(self._frame_bytes, memoryview(body))
        else:
            self._drop_body()
            self._door.budget.step_back(self)
            self._dispatch(body)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._pause()

    def resume_writing(self) -> None:
        self._resume()

    def resume_after_budget(self) -> None:
        self.waits_for_budget = False
        self._resume()

    def _drop_body(self) -> None:
        self._body = None
        self._rest = None
        self._charged_bytes = 0
        self.frame_since_ms = 0
        self._tell_missing(0)

    def _tell_missing(self, rest_bytes: int) -> None:
        if self._arrival is not None:
            self._arrival.missing(rest_bytes)

    def _parse(self, received: int) -> None:
        view = self._door.scratch[:received]
        if self._prefix:
            view = memoryview(self._prefix + bytes(view))
            self._prefix = b""
        else:
            self.frame_since_ms = 0
        end = len(view)
        at = 0
        while end - at >= 4:
            (size,) = _LENGTH.unpack_from(view, at)
            if not 0 < size <= self._door.request_bytes_max:
                self._refuse(CloseConnection(f"a frame of {size} bytes; the limit is {self._door.request_bytes_max}"))
                return
            at += 4
            if end - at >= size:
                self._door.budget.take(size)
                self._dispatch(bytearray(view[at : at + size]))
                if self._transport is None or self._transport.is_closing():
                    return
                at += size
            else:
                self._begin_body(size, view[at:])
                return
        if at < end:
            self._prefix = bytes(view[at:])
            self.frame_since_ms = self.frame_since_ms or self._door.tick_ms
        else:
            self.frame_since_ms = 0

    def _begin_body(self, size: int, head: memoryview) -> None:
        self._frame_bytes = size
        self.frame_since_ms = self.frame_since_ms or self._door.tick_ms
        self._allocate(size if len(head) >= _FIRST_BYTES else min(size, _FIRST_BYTES), head)

    def _allocate(self, size: int, head: memoryview) -> None:
        """Go on in a buffer of `size` bytes that begins with `head`."""
        in_heap = size <= FRAME_IN_HEAP_BYTES_MAX
        body: Frame = bytearray(size) if in_heap else memoryview(mmap.mmap(-1, size))
        view = memoryview(body)
        view[: len(head)] = head
        self._body = body
        self._rest = view[len(head) :]
        self._tell_missing(len(self._rest))
        self._charge(size if in_heap else len(head))
        self._ask_budget()

    def _charge(self, size_bytes: int) -> None:
        self._door.budget.take(size_bytes - self._charged_bytes)
        self._charged_bytes = size_bytes

    def _ask_budget(self) -> None:
        if not self.waits_for_budget and not self._door.budget.lets(self):
            self._pause_for_budget()

    def _pause_for_budget(self) -> None:
        self.waits_for_budget = True
        self._pause()

    def _dispatch(self, body: Frame) -> None:
        if self._barrier or self._backlog:
            self._backlog.append(body)
            self._check_crowd()
            if self._door.budget.exhausted and not self.waits_for_budget:
                self._door.budget.wait(self)
                self._pause_for_budget()
            return
        self._start(body)

    def _start(self, body: Frame) -> None:
        session = self.session
        assert session is not None
        self._starting = True
        try:
            answer = session.handle(body)
        except (CloseConnection, DecodeError) as fault:
            self._refuse(fault)
            return
        finally:
            self._starting = False
            self._door.budget.give_back(len(body))
        if type(answer) is list:
            if not self._replies:
                if answer:
                    self._send(answer)
                return
            done = Reply()
            done.complete(answer)
            self._replies.append(done)
        else:
            reply: Reply = answer  # type: ignore[assignment]  # no list: one comparison has told the two apart
            if reply.done and not self._replies:
                self._settle(reply)
                return
            self._replies.append(reply)
            reply.watch(self._advance)
            self._barrier = session.barrier
        if len(self._replies) >= REQUESTS_IN_FLIGHT_PER_CONNECTION_MAX:
            self._check_crowd()

    def _advance(self) -> None:
        """An owed answer is done: send what is done from the head on, then start what was held back."""
        replies = self._replies
        while replies and replies[0].done:
            self._settle(replies.popleft())
        if self._starting:
            return
        if not replies or not self._barrier:
            self._barrier = self._barrier and bool(replies)
            while self._backlog and not self._barrier and self._transport is not None:
                self._start(self._backlog.popleft())
        if self._too_many:
            self._check_crowd()

    def _settle(self, reply: Reply) -> None:
        if reply.fault is not None:
            self._refuse(reply.fault)
        elif reply.parts:
            self._send(reply.parts)

    def _send(self, parts: Parts) -> None:
        transport = self._transport
        if transport is None:
            return
        if len(parts) == 1:
            transport.write(_bytes_of(parts[0]))
        else:
            transport.writelines([_bytes_of(part) for part in parts])

    def _refuse(self, fault: BaseException) -> None:
        self._door.refused(self, fault)
        self.close()

    def _check_crowd(self) -> None:
        crowded = len(self._replies) + len(self._backlog) >= REQUESTS_IN_FLIGHT_PER_CONNECTION_MAX
        if crowded and not self._too_many:
            self._too_many = True
            self._pause()
        elif self._too_many and not crowded:
            self._too_many = False
            self._resume()

    def _pause(self) -> None:
        self._pauses += 1
        if self._pauses == 1 and self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def _resume(self) -> None:
        self._pauses -= 1
        assert self._pauses >= 0
        if self._pauses == 0 and self._transport is not None and not self._transport.is_closing():
            if self.frame_since_ms:
                self.frame_since_ms = self._door.tick_ms
            self._transport.resume_reading()


def _bytes_of(part: Buffer | Slice) -> Buffer:
    return part.read() if type(part) is Slice else part  # type: ignore[return-value]  # then it is no slice
