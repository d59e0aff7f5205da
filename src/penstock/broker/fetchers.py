"""Whom this broker follows: the lanes to the leaders of its copies, kept as the metadata say.

To each leader there are at most two lanes: one for the logs that are synced before the leader hears of them, one for
all others, so that these never wait for a disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.base.ports import Clock, Random
from penstock.broker.config import BrokerConfig
from penstock.broker.fetcher_settings import FetcherSettings
from penstock.broker.partitions import Changes, Partitions
from penstock.broker.replication_quotas import Throttle
from penstock.core.metadata.image import NO_LEADER, Image
from penstock.core.replication.partition import Partition

if TYPE_CHECKING:
    from penstock.broker.fetcher import Lane
    from penstock.wire.aio import Client

_PLAIN, _SYNCED = "copies", "synced-copies"
Address = tuple[str, int]
_GONE_S = 5.0
"""A leader whose address refuses connections counts as gone for so long: by then it is fenced, also where the
controller died with it. If it is not, others may reach it where we do not."""


class Leader:
    """One broker that is followed, at one address."""

    def __init__(self, address: Address, client: Client) -> None:
        self.address = address
        self.client = client
        self.lanes: dict[str, Lane] = {}

    def refuses(self, after_s: float) -> bool:
        """Whether it began to refuse connections, and not before that time."""
        began = [lane.refused_since_s for lane in self.lanes.values() if lane.refused_since_s is not None]
        return bool(began) and min(began) > after_s


class Fetchers:
    def __init__(
        self,
        config: BrokerConfig,
        partitions: Partitions,
        clock: Clock,
        random: Random,
        broker_epoch: Callable[[], int],
        throttle: Throttle,
    ) -> None:
        self._partitions = partitions
        self._clock = clock
        self._random = random
        self._broker_epoch = broker_epoch
        self._throttle = throttle
        self._listener = config.inter_broker_listener
        self._settings = FetcherSettings(
            node_id=config.node_id,
            max_wait_ms=config.number("replica.fetch.wait.max.ms"),
            min_bytes=config.number("replica.fetch.min.bytes"),
            max_bytes=config.number("replica.fetch.response.max.bytes"),
            partition_bytes=config.number("replica.fetch.max.bytes"),
            backoff_ms=config.number("replica.fetch.backoff.ms"),
            timeout_ms=config.number("replica.socket.timeout.ms"),
        )
        self._leaders: dict[int, Leader] = {}
        self._where: dict[Partition, Lane] = {}
        self._homeless: dict[Partition, None] = {}
        """copies whose leader's address is not known so far"""
        self._leaving: set[asyncio.Task[None]] = set()
        self._started = False

    def start(self, image: Image) -> None:
        """This broker is registered: by its epoch leaders know which life of it fetches."""
        self._started = True
        for partition in list(self._partitions.all()):
            self._join(partition, image)

    def follow(self, changes: Changes, image: Image) -> None:
        """The copies have other roles now, and brokers may have other addresses."""
        if not self._started:
            return
        for partition in [*changes.removed, *changes.led, *changes.followed]:
            self._leave(partition)
        moved = self._moved(image)
        for partition in dict.fromkeys([*changes.followed, *moved, *self._homeless]):
            self._join(partition, image)
        self._close_idle()

    def rejoin(self, partition: Partition, image: Image) -> None:
        """Its log was opened again."""
        self._leave(partition)
        self._join(partition, image)

    def gone(self) -> frozenset[int]:
        """Leaders that have just died, as far as we can tell: the metadata name them until they are fenced."""
        after_s = asyncio.get_running_loop().time() - _GONE_S
        return frozenset(leader_id for leader_id, leader in self._leaders.items() if leader.refuses(after_s))

    async def close(self) -> None:
        self._started = False
        for leader_id in list(self._leaders):
            self._close(leader_id)
        if self._leaving:
            await asyncio.wait(self._leaving)

    def _moved(self, image: Image) -> list[Partition]:
        """What was followed at addresses that are not right any more."""
        moved = []
        for leader_id, leader in list(self._leaders.items()):
            if self._address(image, leader_id) != leader.address:
                lanes = list(leader.lanes.values())
                moved += [partition for partition, lane in self._where.items() if lane in lanes]
                self._close(leader_id)
        for partition in moved:
            del self._where[partition]
        return moved

    def _join(self, partition: Partition, image: Image) -> None:
        following = partition.following
        self._homeless.pop(partition, None)
        if following is None or following.leader_id == NO_LEADER:
            return
        lane = self._lane(following.leader_id, _SYNCED if partition.flushes_before_ack else _PLAIN, image)
        if lane is None:
            self._homeless[partition] = None
            return
        self._where[partition] = lane
        lane.add(partition)

    def _leave(self, partition: Partition) -> None:
        self._homeless.pop(partition, None)
        lane = self._where.pop(partition, None)
        if lane is not None:
            lane.remove(partition)

    def _lane(self, leader_id: int, channel: str, image: Image) -> Lane | None:
        # A cluster of one never needs them, and starts sooner without.
        from penstock.broker.fetcher import Lane  # noqa: PLC0415 see above
        from penstock.wire.aio import Client  # noqa: PLC0415 see above

        leader = self._leaders.get(leader_id)
        if leader is None:
            address = self._address(image, leader_id)
            if address is None:
                return None
            host, port = address
            client = Client(
                f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
                client_id=f"broker-{self._settings.node_id}-fetcher",
                chance=self._random.below,
                wall_ms=self._clock.wall_ms,
            )
            leader = self._leaders[leader_id] = Leader(address, client)
        lane = leader.lanes.get(channel)
        if lane is None:
            lane = leader.lanes[channel] = Lane(
                self._settings, leader.client, channel, self._partitions, self._broker_epoch, self._throttle
            )
        return lane

    def _address(self, image: Image, broker_id: int) -> Address | None:
        broker = image.brokers.get(broker_id)
        where = None if broker is None else broker.endpoint(self._listener)
        return None if where is None else (where.host, where.port)

    def _close_idle(self) -> None:
        busy = set(self._where.values())
        for leader_id, leader in list(self._leaders.items()):
            if not any(lane in busy for lane in leader.lanes.values()):
                self._close(leader_id)

    def _close(self, leader_id: int) -> None:
        leader = self._leaders.pop(leader_id)
        for lane in leader.lanes.values():
            lane.close()
        task = asyncio.get_running_loop().create_task(leader.client.close())
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
