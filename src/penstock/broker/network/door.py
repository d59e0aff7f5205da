"""What all connections of one listener share: the scratch buffer, the budget, the limits, the list of who is inside.

One slow tick a second looks for connections that are idle, or that feed a frame byte by byte.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter, deque
from collections.abc import Callable

from penstock.base.errors import DecodeError
from penstock.base.limits import OPEN_FILES_SHARE, RECEIVE_BUFFER_BYTES
from penstock.base.ports import Clock
from penstock.broker.journal import Journal
from penstock.broker.network.budget import Budget
from penstock.broker.network.connection import Connection
from penstock.broker.network.session import Session

log = Journal(__name__)

_SWEEP_S = 1.0
_REFUSAL_QUIET_MS = 60_000
_FRAME_BYTES_PER_MS_MIN = 64
"""a frame may take its deadline plus this rate: a slow line passes, one byte a minute does not"""
_STALL_MS = 2_000
"""while the budget is used up: without a byte for so long, a frame makes room for others"""


class Door:
    def __init__(
        self,
        make_session: Callable[[str, int], Session],
        clock: Clock,
        budget: Budget,
        *,
        request_bytes_max: int,
        connections_max: int,
        connections_per_host_max: int,
        idle_ms: int,
        frame_deadline_ms: int,
    ) -> None:
        self.clock = clock
        self.budget = budget
        self.scratch = memoryview(bytearray(RECEIVE_BUFFER_BYTES))
        self.request_bytes_max = request_bytes_max
        self.tick_ms = clock.monotonic_ms()
        """monotonic time of the last sweep: precise enough for idleness, free to read"""
        self.refusals = 0
        self._make_session = make_session
        self.limit(connections_max=connections_max, connections_per_host_max=connections_per_host_max)
        self._idle_ms = idle_ms
        self._frame_deadline_ms = frame_deadline_ms
        self.connections: dict[Connection, str] = {}
        """who is inside, with the host they came from"""
        self._hosts: Counter[str] = Counter()
        self._told: dict[str, int] = {}
        """host -> when its last refusal was logged"""
        self._sweeper: asyncio.TimerHandle | None = None
        self._is_shut = False

    def __call__(self) -> Connection:
        return Connection(self)

    def limit(self, *, connections_max: int, connections_per_host_max: int) -> None:
        """Who is inside stays inside."""
        files_max, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._connections_max = min(connections_max, int(files_max * OPEN_FILES_SHARE))
        self._per_host_max = connections_per_host_max

    def open(self) -> None:
        self._sweep()

    def shut(self) -> None:
        """Nobody stays, and nobody comes in who was on the way: the kernel had taken the connection already."""
        self._is_shut = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in list(self.connections):
            connection.close()

    def send_away(self) -> None:
        """Everybody who is inside. Who comes back is let in."""
        for connection in list(self.connections):
            connection.close()

    def admit(self, connection: Connection, transport: asyncio.Transport) -> Session | None:
        if self._is_shut:
            return None
        peer = transport.get_extra_info("peername") or ("unknown", 0)
        host = str(peer[0])
        if len(self.connections) >= self._connections_max or self._hosts[host] >= self._per_host_max:
            self.refusals += 1
            self._tell(host, "connection refused: too many are open", open=len(self.connections))
            return None
        self.connections[connection] = host
        self._hosts[host] += 1
        return self._make_session(host, int(peer[1]))

    def left(self, connection: Connection) -> None:
        host = self.connections.pop(connection, None)
        if host is not None:
            self._hosts[host] -= 1
            if not self._hosts[host]:
                del self._hosts[host]

    def refused(self, connection: Connection, fault: BaseException) -> None:
        host = self.connections.get(connection, "unknown")
        self.refusals += 1
        if isinstance(fault, DecodeError):
            self._tell(host, "connection closed: the request does not follow its schema", fault=str(fault))
        else:
            self._tell(host, "connection closed", fault=str(fault))

    def _tell(self, host: str, event: str, **facts: object) -> None:
        """Once a minute and host: a broken client must not fill the log."""
        if self.tick_ms - self._told.get(host, -_REFUSAL_QUIET_MS) >= _REFUSAL_QUIET_MS:
            if len(self._told) > 1000:
                self._told.clear()
            self._told[host] = self.tick_ms
            log.warning(event, host=host, **facts)

    def _sweep(self) -> None:
        self.tick_ms = now_ms = self.clock.monotonic_ms()
        idle: deque[Connection] = deque()
        for connection in self.connections:
            if self._is_stalled(connection, now_ms) or now_ms - connection.last_active_ms > self._idle_ms:
                idle.append(connection)
        for connection in idle:
            connection.close()
        self._sweeper = asyncio.get_running_loop().call_later(_SWEEP_S, self._sweep)

    def _is_stalled(self, connection: Connection, now_ms: int) -> bool:
        if not connection.frame_since_ms:
            return False
        if self.budget.exhausted and not connection.waits_for_budget:
            return now_ms - connection.last_active_ms > _STALL_MS
        allowed_ms = self._frame_deadline_ms + connection.received_bytes // _FRAME_BYTES_PER_MS_MIN
        return not connection.held_back and now_ms - connection.frame_since_ms > allowed_ms
