"""A network of stream connections that delays, stalls, cuts and resets them, also one way.

Bytes of one direction of a connection arrive in order or not at all, as TCP's do: a lost segment is a delay until it is
sent again, so `drop` is a stall, and a stream holds no duplicate. Between connections nothing is ordered. What an old
connection still carries arrives after its sender has given it up and sent again on a new one: that is how a request
comes twice, or late, at a broker.

A cut from one host to another holds back what goes that way until it is healed, then all of it arrives after a
retransmission's delay. A process that is killed has its connections reset by its host's kernel; where the host lost
power nobody says anything, and peers find out by their timeouts, or by a reset once the host is back.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from penstock.base.ports import Buffer
from penstock.broker.config import ConfigFault
from penstock.broker.config import Listener as Address
from penstock.sim.loop import SimLoop
from penstock.sim.process import Process, running_process

Factory = Callable[[], asyncio.BaseProtocol]

_RETRY_US = 1_000_000
"""a connection attempt that nobody answers is sent again"""
_HIGH_WATER_BYTES = 65_536


@dataclass(slots=True)
class Weather:
    """How the network is now. All times in microseconds."""

    latency_us: int = 200
    """one way, between two hosts"""
    jitter_us: int = 300
    between_racks_us: int = 0
    """one way, on top of it where the hosts stand in different racks"""
    loss: float = 0.0
    """the share of chunks that arrive one retransmission later"""
    retransmit_us: int = 200_000
    split: float = 0.0
    """the share of chunks that arrive in two pieces"""


class SimBound:
    """An address that a process has taken. Who connects before it is served waits in line."""

    def __init__(self, network: Network, process: Process, host: str, port: int) -> None:
        self.port = port
        self.process = process
        self._network = network
        self._place = (host, port)
        self._factory: Factory | None = None
        self._backlog: list[End] = []

    async def serve(self, factory: Factory) -> None:
        self._factory = factory
        backlog, self._backlog = self._backlog, []
        for end in backlog:
            end.open(factory())

    def close(self) -> None:
        self._network.unbind(self._place, self)
        for end in self._backlog:
            end.abort()

    def accept(self, end: End) -> None:
        if self._factory is None:
            self._backlog.append(end)
        else:
            end.open(self._factory())


class Network:
    def __init__(self, loop: SimLoop, random: Random) -> None:
        self.weather = Weather()
        self.racks: dict[str, str] = {}
        """host -> the rack where it stands"""
        self._slow_us: dict[str, int] = {}
        self._loop = loop
        self._random = random
        self._bound: dict[tuple[str, int], SimBound] = {}
        self._cut: dict[tuple[str, str], None] = {}
        """(from, to): nothing gets through that way"""
        self._dark: dict[str, None] = {}
        """hosts without power"""
        self._ends: dict[Process, dict[End, None]] = {}
        self._waiting: dict[End, None] = {}
        """ends with something that a cut holds back"""
        self._next_port = 40_000
        self.resets = 0
        self.stalls = 0
        loop.network = self

    def bind(self, process: Process, address: Address) -> SimBound:
        place = (address.host, address.port)
        if place in self._bound:
            raise ConfigFault(f"listeners: {address.name}://{address.host}:{address.port} is taken")
        bound = self._bound[place] = SimBound(self, process, *place)
        return bound

    def unbind(self, place: tuple[str, int], bound: SimBound) -> None:
        if self._bound.get(place) is bound:
            del self._bound[place]

    async def connect(self, factory: Factory, host: str, port: int) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        process = running_process()
        attempt = _Attempt(self, process, factory, (host, port), self._loop.create_future())
        self._loop.after(self.delay_us(process.host, host), None, b"syn", attempt.arrive)
        made: tuple[End, asyncio.BaseProtocol] = await attempt.answer
        return made

    def bound(self, place: tuple[str, int]) -> SimBound | None:
        return self._bound.get(place)

    def blocked(self, source: str, target: str) -> bool:
        if not self._cut and not self._dark:
            return False
        return (source, target) in self._cut or target in self._dark or source in self._dark

    def cut(self, source: str, target: str) -> None:
        """One way; both ways are two cuts."""
        self._cut[source, target] = None

    def slow(self, host: str, by_us: int) -> None:
        """Everything from it and to it takes so much longer."""
        self._slow_us[host] = by_us

    def heal(self) -> None:
        """Every cut is mended, and what was held back is on its way."""
        self._cut.clear()
        self._slow_us.clear()
        waiting, self._waiting = self._waiting, {}
        for end in waiting:
            end.release()

    def power_off(self, process: Process) -> None:
        """Its host is dark: its connections end without a word."""
        self._dark[process.host] = None
        self._release_ports(process)
        for end in self._ends.pop(process, {}):
            end.vanish()

    def power_on(self, host: str) -> None:
        self._dark.pop(host, None)

    def kill(self, process: Process) -> None:
        """The kernel closes what the process had open: peers get a reset."""
        self._release_ports(process)
        for end in list(self._ends.pop(process, {})):
            end.send_reset()

    def reset_one(self) -> bool:
        """Some connection breaks, for both of its ends."""
        alive = [end for ends in self._ends.values() for end in ends if end.peer is not None]
        if not alive:
            return False
        chosen = alive[self._random.randrange(len(alive))]
        assert chosen.peer is not None
        for end in (chosen, chosen.peer):
            self._loop.after(1, end.process, b"reset", end.receive_reset)
        self.resets += 1
        return True

    def delay_us(self, source: str, target: str) -> int:
        weather, random = self.weather, self._random
        delay_us = weather.latency_us + int(random.random() * weather.jitter_us)
        if weather.between_racks_us and self.racks.get(source) != self.racks.get(target):
            delay_us += weather.between_racks_us
        if self._slow_us:
            delay_us += self._slow_us.get(source, 0) + self._slow_us.get(target, 0)
        if weather.loss and random.random() < weather.loss:
            self.stalls += 1
            delay_us += weather.retransmit_us + int(random.random() * weather.retransmit_us)
        return delay_us

    def pair(self, attempt: _Attempt, bound: SimBound) -> tuple[End, End]:
        self._next_port += 1
        client_name = (attempt.process.host, self._next_port)
        client = End(self, self._loop, attempt.process, client_name, attempt.place)
        server = End(self, self._loop, bound.process, attempt.place, client_name)
        client.peer, server.peer = server, client
        for end in (client, server):
            self._ends.setdefault(end.process, {})[end] = None
        return client, server

    def hold_back(self, end: End) -> None:
        self._waiting[end] = None

    def is_dark(self, host: str) -> bool:
        return host in self._dark

    def forget(self, end: End) -> None:
        self._ends.get(end.process, {}).pop(end, None)

    def splits(self) -> bool:
        return bool(self.weather.split) and self._random.random() < self.weather.split

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)

    def _release_ports(self, process: Process) -> None:
        for place in [place for place, bound in self._bound.items() if bound.process is process]:
            del self._bound[place]


class _Attempt:
    """A connection that is being made: a first message there, its answer back."""

    def __init__(
        self, network: Network, process: Process, factory: Factory, place: tuple[str, int], answer: asyncio.Future[Any]
    ) -> None:
        self.network = network
        self.process = process
        self.place = place
        self.answer = answer
        self._factory = factory
        self._loop = answer.get_loop()
        assert isinstance(self._loop, SimLoop)
        self._sim = self._loop

    def arrive(self) -> None:
        """At the other host."""
        if self.answer.done() or not self.process.alive:
            return
        network, host = self.network, self.place[0]
        if network.blocked(self.process.host, host) or network.blocked(host, self.process.host):
            self._sim.after(_RETRY_US, None, b"syn", self.arrive)
            return
        bound = network.bound(self.place)
        delay_us = network.delay_us(host, self.process.host)
        if bound is None or not bound.process.alive:
            self._sim.after(delay_us, self.process, b"refused", self._refused)
            return
        client, server = network.pair(self, bound)
        self._sim.after(0, bound.process, b"accept", bound.accept, server)
        self._sim.after(delay_us, self.process, b"connected", self._connected, client)

    def _refused(self) -> None:
        if not self.answer.done():
            self.answer.set_exception(ConnectionRefusedError(f"{self.place[0]}:{self.place[1]} refuses the connection"))

    def _connected(self, end: End) -> None:
        if self.answer.done():
            end.abort()
            return
        if end.is_lost:
            self.answer.set_exception(ConnectionResetError("connection reset by peer"))
            return
        protocol = self._factory()
        end.open(protocol)
        self.answer.set_result((end, protocol))


_FIN = b""
"""in a stream of chunks: nothing more comes"""
_RESET = None
"""in a stream of chunks: the connection is gone"""


class End(asyncio.Transport):
    """One end of a connection, and the pipe from it to its peer."""

    def __init__(
        self, network: Network, loop: SimLoop, process: Process, name: tuple[str, int], peer_name: tuple[str, int]
    ) -> None:
        super().__init__({"sockname": name, "peername": peer_name})
        self.process = process
        self.peer: End | None = None
        self._network = network
        self._loop = loop
        self._name = name
        self._peer_name = peer_name
        self._protocol: asyncio.BaseProtocol | None = None
        self._closing = False
        self._lost = False
        """`connection_lost` was called, or will be"""
        self._reading = True
        self._inbox: deque[bytes] = deque()
        """arrived, and not taken by the protocol"""
        self._stalled: deque[bytes | None] = deque()
        """sent by us, held back by a cut"""
        self._last_us = 0
        """when the newest chunk that we sent arrives: none may overtake it"""
        self._open_chunk: list[bytes | None] | None = None
        self._open_event = -1
        self._unread_bytes = 0
        """sent by us and not taken by the peer's protocol"""
        self._writing_paused = False
        self._high, self._low = _HIGH_WATER_BYTES, _HIGH_WATER_BYTES // 4

    def open(self, protocol: asyncio.BaseProtocol) -> None:
        """In the process: the connection is made. What arrived before is handed over."""
        if self._lost:
            return
        self._protocol = protocol
        protocol.connection_made(self)
        self._feed()

    def write(self, data: Buffer) -> None:
        if self._closing or self._lost or not self.process.alive:
            return
        chunk = bytes(data)
        if not chunk:
            return
        self._unread_bytes += len(chunk)
        if self._open_event == self._loop.events and self._open_chunk is not None:
            self._open_chunk.append(chunk)
        else:
            self._open_event, self._open_chunk = self._loop.events, [chunk]
            self._depart(self._open_chunk)
        if self._unread_bytes > self._high and not self._writing_paused:
            self._writing_paused = True
            assert self._protocol is not None
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        """What was written arrives, then the end of the stream."""
        if self._closing:
            return
        self._closing = True
        self._open_chunk = None
        self._depart([_FIN])
        self._loop.call_soon(self._say_lost, None)

    def abort(self) -> None:
        if self._lost or not self.process.alive:
            return
        self.send_reset()
        self._loop.call_soon(self._say_lost, None)

    def send_reset(self) -> None:
        """What is on its way arrives before it."""
        self._closing = True
        self._depart([_RESET])

    def receive_reset(self) -> None:
        if not self._lost:
            self._closing = True
            self._say_lost(ConnectionResetError("connection reset by peer"))

    def vanish(self) -> None:
        """Our host is dark: nothing arrives and nothing is said. A peer that writes will hear of it much later."""
        self._lost = self._closing = True

    def release(self) -> None:
        """The cut is mended: what was held back is sent again."""
        stalled, self._stalled = self._stalled, deque()
        if stalled:
            again_us = self._loop.now_us + 1 + self._network.below(self._network.weather.retransmit_us)
            self._last_us = max(self._last_us, again_us)
            for chunk in stalled:
                self._depart([chunk])

    @property
    def is_lost(self) -> bool:
        return self._lost

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return self._reading

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        if not self._reading:
            self._reading = True
            if self._inbox:
                self._loop.call_soon(self._feed)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self._protocol is not None
        return self._protocol

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = _HIGH_WATER_BYTES if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        return self._unread_bytes

    def can_write_eof(self) -> bool:
        return False

    def _depart(self, chunk: list[bytes | None]) -> None:
        peer = self.peer
        assert peer is not None
        if peer.process.alive:
            self._loop.at(self._arrival_us(), peer.process, b"arrive", self._arrive, chunk)
        elif not self._network.is_dark(peer.process.host) and chunk != [_RESET]:
            self._loop.at(self._arrival_us(), self.process, b"reset", self.receive_reset)

    def _arrival_us(self) -> int:
        delay_us = self._network.delay_us(self._name[0], self._peer_name[0])
        self._last_us = max(self._last_us + 1, self._loop.now_us + delay_us)
        return self._last_us

    def _arrive(self, chunk: list[bytes | None]) -> None:
        """In the peer's process, which runs."""
        data = chunk[0] if len(chunk) == 1 else b"".join(part for part in chunk if part is not None)
        if self._stalled or self._network.blocked(self._name[0], self._peer_name[0]):
            self._stalled.append(data)
            self._network.hold_back(self)
            return
        peer = self.peer
        assert peer is not None
        if data is _RESET:
            peer.receive_reset()
        elif peer._lost:
            if data and not self._lost:
                self._loop.after(1, self.process, b"reset", self.receive_reset)
        else:
            self._loop.note(b"%b %d %d" % (self.process.tag, len(data), zlib.crc32(data)))
            if len(data) > 1 and self._network.splits():
                at = 1 + self._network.below(len(data) - 1)
                peer._receive(data[:at])
                data = data[at:]
            peer._receive(data)

    def _receive(self, data: bytes) -> None:
        if self._lost:
            return
        if self._protocol is None or self._inbox or not self._reading:
            self._inbox.append(data)
        else:
            self._take(data)

    def _feed(self) -> None:
        while self._inbox and self._reading and not self._lost:
            self._take(self._inbox.popleft())

    def _take(self, data: bytes) -> None:
        if data == _FIN:
            self._end_of_stream()
            return
        taken = self._give(data)
        if taken < len(data):
            self._inbox.appendleft(data[taken:])
        if self.peer is not None:
            self.peer._taken(taken)

    def _give(self, data: bytes) -> int:
        """To the protocol, as much as it takes before it pauses."""
        protocol = self._protocol
        if isinstance(protocol, asyncio.Protocol):
            protocol.data_received(data)
            return len(data)
        assert isinstance(protocol, asyncio.BufferedProtocol)
        at = 0
        while at < len(data) and self._reading and not self._lost:
            into = memoryview(protocol.get_buffer(-1))
            count = min(len(into), len(data) - at)
            into[:count] = data[at : at + count]
            at += count
            protocol.buffer_updated(count)
        return at

    def _end_of_stream(self) -> None:
        assert isinstance(self._protocol, asyncio.Protocol | asyncio.BufferedProtocol)
        if not self._protocol.eof_received() and not self._lost:
            self.close()

    def _taken(self, count: int) -> None:
        self._unread_bytes -= count
        if self._writing_paused and self._unread_bytes <= self._low:
            self._writing_paused = False
            self._loop.after(1, self.process, b"room", self._resume_writing)

    def _resume_writing(self) -> None:
        if not self._lost and self._protocol is not None:
            self._protocol.resume_writing()

    def _say_lost(self, fault: Exception | None) -> None:
        if self._lost:
            return
        self._lost = True
        self._network.forget(self)
        if self._protocol is not None:
            self._protocol.connection_lost(fault)
