"""200 members in one group of 1,000 partitions join, leave, come back and crash, in both protocols, on both brokers.

A partition is never with two members: every member tells a ledger what it takes and what it lets go of. Measured is the
time from each change until all partitions are with the members that are left, in equal shares. The members are tasks of
one process that send the protocol's requests themselves, each on a connection of its own.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from penstock.wire.aio import Client
from proofs.either_broker import EitherBroker
from proofs.group_members import ClassicMember, ConsumerMember, Ledger, Member, prepare

MEMBERS, GOING, PARTITIONS = 200, 50, 1_000
LIMIT_S = 120.0
SETTINGS = {
    "group_consumer_min_session_timeout_ms": "6000",
    "group_consumer_session_timeout_ms": "6000",
    "group_consumer_min_heartbeat_interval_ms": "1000",
    "group_consumer_heartbeat_interval_ms": "1000",
    "group_min_session_timeout_ms": "6000",
}
PROTOCOLS: dict[str, type[Member]] = {"consumer": ConsumerMember, "classic": ClassicMember}


def run(members: int = MEMBERS, going: int = GOING, partitions: int = PARTITIONS) -> dict[str, object]:
    figures: dict[str, object] = {"members": members, "partitions": partitions, "come and go": going}
    for broker in ("apache", "penstock"):
        with tempfile.TemporaryDirectory(prefix="rebalance-") as place:
            node = EitherBroker(Path(place), **SETTINGS)
            node.format()
            with node.apache() if broker == "apache" else node.penstock():
                for protocol, kind in PROTOCOLS.items():
                    story = _story(node.address, kind, members, going, partitions)
                    figures[f"{broker}, {protocol}"] = asyncio.run(story)
    return figures


async def _story(address: str, kind: type[Member], members: int, going: int, partitions: int) -> dict[str, float]:
    async with Client(address) as client:
        topic = await prepare(client, f"read-by-{kind.__name__}", partitions)
        ledger = Ledger()
        everybody = [kind(client, topic, at, ledger) for at in range(members)]
        seconds: dict[str, float] = {}

        async def change(name: str, act: Callable[[Member], None], concerned: list[Member]) -> None:
            begun = time.monotonic()
            for member in concerned:
                act(member)
            present = [member for member in everybody if member.is_running]
            while not ledger.is_shared(present, partitions):
                assert time.monotonic() - begun < LIMIT_S, f"{name}: {ledger.shares(present)}"
                await asyncio.sleep(0.02)
            seconds[f"seconds to {name}"] = round(time.monotonic() - begun, 2)

        await change("join", lambda member: member.start(), everybody)
        await change("leave", lambda member: member.leave(), everybody[:going])
        await change("come back", lambda member: member.start(), everybody[:going])
        await change("crash", lambda member: member.crash(), everybody[-going:])
        for member in everybody:
            member.crash()
        await asyncio.gather(*(member.ended() for member in everybody))
        assert not ledger.doubles, f"partitions that were with two members: {ledger.doubles[:5]}"
        return seconds
