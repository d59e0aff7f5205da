"""Real nodes on one loop, over real sockets: what tests of the quorum start, stop and look at."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from penstock.broker.broker import Broker
from penstock.broker.config import BrokerConfig
from penstock.broker.files import RealDisk
from penstock.broker.formatting import Identity, format_member
from penstock.broker.nodes import free_ports
from penstock.broker.quorum import Quorum
from penstock.broker.system import SystemRandom
from penstock.core.raft.voters import Voter, VoterEndpoint
from penstock.protocol.generated.config_record import ConfigRecord

CLUSTER_ID = "Cj2fQm3lTk6dPq0mVbJ7xA"
PATIENCE_S = 20.0


class Cluster:
    """Nodes by number. `dynamic`: the voters stand in the log, else in the configuration."""

    def __init__(self, directory: Path, voters: tuple[int, ...] = (1, 2, 3), *, dynamic: bool = False) -> None:
        self.directory = directory
        numbers = (*voters, 8, 9)
        pairs = free_ports(len(numbers), SystemRandom())
        self.ports = {number: pair.client for number, pair in zip(numbers, pairs, strict=True)}
        self.voters = voters
        self.dynamic = dynamic
        self.nodes: dict[int, Broker] = {}
        self.configs: dict[str, str] = {}
        if dynamic:
            for number in voters:
                disk = RealDisk(str(directory / str(number)))
                format_member(disk, Identity(CLUSTER_ID, number, _directory_id(number)), self._voters(), 1)

    def config(self, number: int, **more: str) -> BrokerConfig:
        roles = more.get("process_roles", "broker,controller")
        listeners = ["PLAINTEXT://127.0.0.1:0"] if "broker" in roles else []
        if "controller" in roles:
            listeners.append(f"CONTROLLER://127.0.0.1:{self.ports[number]}")
        told = ",".join(f"{one}@127.0.0.1:{self.ports[one]}" for one in self.voters)
        servers = ",".join(f"127.0.0.1:{self.ports[one]}" for one in self.voters)
        known = {"controller.quorum.bootstrap.servers": servers} if self.dynamic else {"controller.quorum.voters": told}
        return BrokerConfig(
            {
                "process.roles": "broker,controller",
                "node.id": str(number),
                "listeners": ",".join(listeners),
                "controller.listener.names": "CONTROLLER",
                "log.dirs": str(self.directory / str(number)),
                "penstock.cluster.id": CLUSTER_ID,
                **known,
                **self.configs,
                **{name.replace("_", "."): value for name, value in more.items()},
            }
        )

    async def start(self, *numbers: int, **more: str) -> None:
        for number in numbers:
            self.nodes[number] = Broker(self.config(number, **more))
        await asyncio.gather(*(self.nodes[number].start() for number in numbers))

    async def stop(self, *numbers: int) -> None:
        await asyncio.gather(*(self.nodes.pop(number).stop() for number in numbers or tuple(self.nodes)))

    def quorum(self, number: int) -> Quorum:
        return self.nodes[number].services.quorum

    @property
    def leader(self) -> int | None:
        leading = [number for number, node in self.nodes.items() if node.services.quorum.is_leader]
        return leading[0] if len(leading) == 1 else None

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await asyncio.sleep(0.01)

    async def a_leader(self) -> Quorum:
        await self.until(lambda: self.leader is not None)
        assert self.leader is not None
        return self.quorum(self.leader)

    async def write(self, name: str, value: str) -> int:
        """A configuration of the cluster, committed."""
        leader = await self.a_leader()
        return await leader.propose([ConfigRecord(resource_type=4, resource_name="", name=name, value=value)])

    def read(self, number: int, name: str) -> str | None:
        for configs in self.quorum(number).image.configs.values():
            if name in configs:
                return configs[name]
        return None

    async def everywhere(self, name: str, value: str) -> None:
        await self.until(lambda: all(self.read(number, name) == value for number in self.nodes))

    def _voters(self) -> tuple[Voter, ...]:
        return tuple(
            Voter(one, _directory_id(one), (VoterEndpoint("CONTROLLER", "127.0.0.1", self.ports[one]),))
            for one in self.voters
        )


def run(cluster: Cluster, work: Callable[[], Awaitable[None]]) -> None:
    async def session() -> None:
        try:
            await work()
        finally:
            await cluster.stop()

    asyncio.run(session())


def _directory_id(number: int) -> bytes:
    return bytes([number]) * 16
