"""Frames that never end, connections without number, a budget used up: at a door of its own, with short times."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from struct import pack
from typing import Any

import pytest

from penstock.base.limits import ARRIVAL_BYTES_MAX
from penstock.broker.network import door as door_module
from penstock.broker.network.budget import Budget
from penstock.broker.network.door import Door
from penstock.broker.system import SystemClock

DEADLINE_MS = 300
SWEEP_S = 0.02
PATIENCE_S = 5.0
QUIET_S = 4 * DEADLINE_MS / 1000

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[], Awaitable[Streams]]


class Echo:
    """A session that answers a frame with its size."""

    barrier = False

    def handle(self, body: Any) -> list[bytes]:
        return [pack(">i", len(body))]

    def close(self) -> None: ...


def at_the_door(scene: Callable[[Door, Connect], Awaitable[None]], **how: Any) -> None:
    """Play a scene in front of a door with these limits."""

    async def play() -> None:
        limits: dict[str, int] = {"request_bytes_max": 100 << 20, "connections_max": 100, "idle_ms": 60_000}
        limits |= {"connections_per_host_max": 100, "frame_deadline_ms": DEADLINE_MS} | how
        budget = Budget(limits.pop("budget_bytes", 1 << 30))
        door = Door(lambda host, port: Echo(), SystemClock(), budget, **limits)  # type: ignore[arg-type]  # a session's doors are all it needs
        server = await asyncio.get_running_loop().create_server(door, "127.0.0.1", 0)
        door.open()
        port = server.sockets[0].getsockname()[1]
        opened: list[asyncio.StreamWriter] = []

        async def connect() -> Streams:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            opened.append(writer)
            return reader, writer

        try:
            await scene(door, connect)
        finally:
            for writer in opened:
                writer.transport.abort()
            server.close()
            door.shut()
            await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(play(), 30))


@pytest.fixture(autouse=True)
def frequent_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "_SWEEP_S", SWEEP_S)


async def closed(reader: asyncio.StreamReader, within_s: float = PATIENCE_S) -> bool:
    try:
        return await asyncio.wait_for(reader.read(1), within_s) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


async def answered(streams: Streams, size: int) -> bool:
    reader, writer = streams
    writer.write(pack(">i", size) + bytes(size))
    return await asyncio.wait_for(reader.readexactly(4), PATIENCE_S) == pack(">i", size)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"\x00", id="a-quarter-of-a-length"),
        pytest.param(pack(">i", 100 << 20), id="a-length-alone"),
        pytest.param(pack(">i", 50_000) + bytes(40_000), id="most-of-a-frame"),
    ],
)
def test_a_frame_that_does_not_end_is_closed_at_its_deadline(sent: bytes) -> None:
    async def scene(door: Door, connect: Connect) -> None:
        reader, writer = await connect()
        writer.write(sent)
        assert await closed(reader)
        assert door.budget.used_bytes == 0

    at_the_door(scene)


def test_one_byte_now_and_then_does_not_keep_a_frame_alive() -> None:
    async def scene(door: Door, connect: Connect) -> None:
        reader, writer = await connect()
        writer.write(pack(">i", 1_000_000))
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while not await closed(reader, 0.05):
            assert asyncio.get_running_loop().time() < deadline
            writer.write(b"x")

    at_the_door(scene)


def test_a_large_frame_in_pieces_is_answered_when_its_last_byte_is_there_and_so_is_a_small_one_behind_it() -> None:
    async def scene(door: Door, connect: Connect) -> None:
        reader, writer = await connect()
        size = 3 * ARRIVAL_BYTES_MAX
        frame = pack(">i", size) + bytes(size)
        for start, end in ((0, 100), (100, ARRIVAL_BYTES_MAX), (ARRIVAL_BYTES_MAX, size - 7), (size - 7, size + 4)):
            writer.write(frame[start:end])
            await writer.drain()
            await asyncio.sleep(0.01)  # so that the pieces are read one by one; together they would prove less
        assert await reader.readexactly(4) == pack(">i", size)
        assert await answered((reader, writer), 1)
        assert await answered((reader, writer), size)
        assert door.budget.used_bytes == 0

    at_the_door(scene, frame_deadline_ms=60_000)


def test_a_frame_whose_length_came_in_two_pieces_leaves_no_deadline_behind() -> None:
    async def scene(door: Door, connect: Connect) -> None:
        reader, writer = await connect()
        writer.write(b"\x00\x00")
        while not any(connection.frame_since_ms for connection in door.connections):
            await asyncio.sleep(0.005)
        writer.write(b"\x00\x08" + bytes(8))
        assert await reader.readexactly(4) == pack(">i", 8)
        assert not await closed(reader, QUIET_S)

    at_the_door(scene)


def test_a_quiet_connection_is_closed_only_when_it_is_idle_for_too_long() -> None:
    async def scene(door: Door, connect: Connect) -> None:
        reader, writer = await connect()
        writer.write(pack(">i", 8) + bytes(8))
        assert await reader.readexactly(4) == pack(">i", 8)
        assert await closed(reader)

    at_the_door(scene, idle_ms=200)


def test_too_many_connections_from_one_address_are_closed_at_once() -> None:
    async def scene(door: Door, connect: Connect) -> None:
        inside = [await connect() for _ in range(3)]
        assert all([await answered(one, 10) for one in inside])
        refused, _ = await connect()
        assert await closed(refused)
        inside[0][1].transport.abort()
        while len(door.connections) == 3:
            await asyncio.sleep(0.005)
        assert await answered(await connect(), 10)

    at_the_door(scene, connections_per_host_max=3)


def test_too_many_connections_in_all_are_closed_at_once() -> None:
    async def scene(door: Door, connect: Connect) -> None:
        inside = await connect()
        assert await answered(inside, 10)
        refused, _ = await connect()
        assert await closed(refused)
        assert await answered(inside, 10)

    at_the_door(scene, connections_max=1)


def test_what_is_only_declared_takes_nothing_of_the_budget() -> None:
    async def scene(door: Door, connect: Connect) -> None:
        for _ in range(10):
            _, writer = await connect()
            writer.write(pack(">i", 100 << 20))
        assert await answered(await connect(), 500_000)
        assert door.budget.used_bytes < 400_000

    at_the_door(scene, budget_bytes=1 << 20, frame_deadline_ms=60_000)


def test_frames_that_fill_the_budget_together_are_all_received() -> None:
    """Each is unfinished when the budget is used up; one after the other may go on."""

    async def scene(door: Door, connect: Connect) -> None:
        clients = [await connect() for _ in range(8)]
        for _, writer in clients:
            writer.write(pack(">i", 3 << 20) + bytes(1 << 20))
        while not door.budget.exhausted:
            await asyncio.sleep(0.005)
        for _, writer in clients:
            writer.write(bytes(2 << 20))
        for reader, _ in clients:
            assert await asyncio.wait_for(reader.readexactly(4), PATIENCE_S) == pack(">i", 3 << 20)
        assert door.budget.used_bytes == 0

    at_the_door(scene, budget_bytes=4 << 20, frame_deadline_ms=60_000)


def test_who_fills_the_budget_and_stalls_makes_room_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "_STALL_MS", DEADLINE_MS)

    async def scene(door: Door, connect: Connect) -> None:
        for _ in range(8):
            _, writer = await connect()
            writer.write(pack(">i", 90 << 20) + bytes(1 << 20))
        while not door.budget.exhausted:
            await asyncio.sleep(0.005)
        assert await answered(await connect(), 100)
        assert await answered(await connect(), 2 << 20)

    at_the_door(scene, budget_bytes=4 << 20, frame_deadline_ms=60_000)
