"""The simulator's loop, network and processes, by themselves."""

from __future__ import annotations

import asyncio
import weakref
from random import Random

import pytest

from penstock.broker.config import Listener
from penstock.sim.disk import SimDisk
from penstock.sim.loop import new_sim_loop
from penstock.sim.network import Network
from penstock.sim.process import Process


class Room:
    """Two hosts, and what was heard on one of them."""

    def __init__(self) -> None:
        self.loop = new_sim_loop()
        self.network = Network(self.loop, Random(1))
        self.server = Process("server", "server", 1)
        self.client = Process("client", "client", 2)
        self.heard: list[tuple[int, bytes]] = []
        """(milliseconds, bytes)"""
        self.lost: list[str] = []
        self.loop.spawn(self.server, self._serve())
        self.loop.run_while(lambda: self.loop.now_us < 1)

    async def _serve(self) -> None:
        await self.network.bind(self.server, Listener("L", "server", 9)).serve(lambda: Ear(self))

    async def connect(self) -> asyncio.Transport:
        transport, _ = await self.loop.create_connection(lambda: Mouth(self), "server", 9)
        return transport

    def go(self, work: object, *, until_ms: int = 60_000) -> asyncio.Task[None]:
        task = self.loop.spawn(self.client, work)  # type: ignore[arg-type]  # any coroutine
        self.loop.run_while(lambda: self.loop.now_us < until_ms * 1000)
        return task


class Ear(asyncio.Protocol):
    def __init__(self, room: Room) -> None:
        self._room = room

    def data_received(self, data: bytes) -> None:
        self._room.heard.append((self._room.loop.now_us // 1000, data))


class Mouth(asyncio.Protocol):
    def __init__(self, room: Room) -> None:
        self._room = room

    def connection_lost(self, exc: Exception | None) -> None:
        self._room.lost.append(repr(exc))


def test_a_day_of_sleep_takes_no_time_and_one_event() -> None:
    room = Room()

    async def sleep() -> None:
        await asyncio.sleep(86_400)

    before = room.loop.events
    room.loop.spawn(room.client, sleep())
    room.loop.run_while(lambda: True)
    assert room.loop.time() == pytest.approx(86_400, abs=0.001)
    assert room.loop.events - before == 1


def test_a_stream_arrives_in_order_whatever_each_piece_takes() -> None:
    room = Room()
    room.network.weather.jitter_us = 50_000
    room.network.weather.loss = 0.3

    async def talk() -> None:
        transport = await room.connect()
        for number in range(50):
            transport.write(b"%02d" % number)
            await asyncio.sleep(0.001)

    room.go(talk())
    assert b"".join(data for _, data in room.heard) == b"".join(b"%02d" % number for number in range(50))


def test_a_cut_holds_one_direction_back_until_it_is_mended() -> None:
    room = Room()

    async def talk() -> None:
        transport = await room.connect()
        transport.write(b"before")
        await asyncio.sleep(1)
        room.network.cut("client", "server")
        transport.write(b"during")
        await asyncio.sleep(10)
        room.network.heal()

    room.go(talk())
    (_, first), (when_ms, second) = room.heard
    assert (first, second) == (b"before", b"during")
    assert when_ms >= 11_000


def test_nobody_listens_and_the_connection_is_refused() -> None:
    room = Room()

    async def talk() -> None:
        await room.loop.create_connection(lambda: Mouth(room), "server", 10)

    assert isinstance(room.go(talk()).exception(), ConnectionRefusedError)


def test_a_killed_process_resets_its_connections_and_runs_nothing_more() -> None:
    room = Room()
    ran: list[str] = []

    async def linger() -> None:
        try:
            await asyncio.sleep(5)
            ran.append("after its death")
        finally:
            ran.append("finally")

    async def talk() -> None:
        await room.connect()
        await asyncio.sleep(1)
        room.network.kill(room.server)
        room.server.die()

    room.loop.spawn(room.server, linger())
    room.go(talk())
    assert room.lost == ["ConnectionResetError('connection reset by peer')"]
    assert ran == []


def test_a_host_without_power_says_nothing() -> None:
    room = Room()

    async def talk() -> None:
        transport = await room.connect()
        await asyncio.sleep(1)
        room.network.power_off(room.server)
        room.server.die()
        transport.write(b"hello?")

    room.go(talk())
    assert room.lost == [] and room.heard == []


def test_a_paused_process_takes_what_came_meanwhile_when_it_goes_on() -> None:
    room = Room()

    async def talk() -> None:
        transport = await room.connect()
        await asyncio.sleep(1)
        room.server.paused = True
        transport.write(b"wake up")
        await asyncio.sleep(5)
        room.loop.resume(room.server)

    room.go(talk())
    assert [(when_ms >= 6_000, data) for when_ms, data in room.heard] == [(True, b"wake up")]


def test_what_the_dead_held_is_let_go_and_changes_nothing() -> None:
    """A `finally` of theirs reaches neither the disk nor the network, and wakes nobody."""
    room, disk = Room(), SimDisk(Random(1))
    held = bytearray(1)

    async def linger(kept: object) -> None:
        transport = await room.connect()
        try:
            await asyncio.sleep(3_600)
        finally:
            room.loop.call_later(1, held.extend, b"timer")
            transport.abort()
            disk.open("x", create=True)

    def kill() -> None:
        room.network.kill(room.client)
        room.client.die()

    things = [_Kept(held)]
    kept = weakref.ref(things[0])
    room.loop.spawn(room.client, linger(things.pop()))
    room.loop.after(1_000_000, None, b"kill", kill)
    room.loop.run_while(lambda: True)
    events = room.loop.events
    assert kept() is not None and room.loop.time() < 2
    with disk.out_of_reach():
        room.loop.bury([room.client])
    room.loop.run_while(lambda: True)
    assert kept() is None, "nothing holds it any more"
    assert (room.loop.events - events, held, disk.exists("x"), room.loop.faults) == (0, bytearray(1), False, [])


class _Kept:
    def __init__(self, what: object) -> None:
        self.what = what
