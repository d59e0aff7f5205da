"""What a scrape looks at: the rooms of a broker, its listeners and its table, as far as metrics need them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol

from penstock.base.ports import Clock, Jobs
from penstock.broker.fetching import Fetching
from penstock.broker.listener import Listener
from penstock.broker.metrics.loop_probe import LoopProbe
from penstock.broker.metrics.watch import Watch
from penstock.broker.network.budget import Budget
from penstock.broker.network.table import Table
from penstock.broker.partitions import Partitions
from penstock.broker.shares import Shares
from penstock.broker.telemetry import Telemetry
from penstock.core.groups.shard import GroupShard
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import Image


class Phase(Enum):
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"


class RaftState(NamedTuple):
    """Where this node stands in the metadata quorum."""

    state: str
    """as Kafka says it: leader, follower, candidate, voted, observer, unattached"""
    leader_id: int
    """-1 where there is none"""
    epoch: int
    voted_id: int
    """-1 where it has not voted in this epoch; a leader has voted for itself"""
    high_watermark: int
    end_offset: int


class Groups(Protocol):
    def shards(self) -> Iterable[GroupShard]:
        """Those that are loaded here."""


class Elections(Protocol):
    @property
    def unclean_elections(self) -> int: ...


class Rooms(Protocol):
    """The part of `Services` that is looked at."""

    @property
    def node(self) -> Node: ...
    @property
    def image(self) -> Image: ...
    @property
    def cluster_id(self) -> str: ...
    @property
    def controller(self) -> Elections: ...
    @property
    def partitions(self) -> Partitions: ...
    @property
    def fetching(self) -> Fetching: ...
    @property
    def coordinators(self) -> Groups: ...
    @property
    def shares(self) -> Shares: ...
    @property
    def telemetry(self) -> Telemetry: ...


@dataclass(slots=True)
class Sources:
    """Made before the broker opens its data, so that the admin port can say that it is starting."""

    node_id: int
    clock: Clock
    jobs: Jobs
    listeners: Sequence[Listener]
    table: Table
    budget: Budget
    watch: Watch
    phase: Phase = field(default=Phase.STARTING, init=False)
    services: Rooms = field(init=False)
    """Invariant: set before the phase is READY, and so is `raft`."""
    raft: Callable[[], RaftState] = field(init=False)
    probe: LoopProbe = field(init=False)
    _started_ms: int = field(init=False)

    def __post_init__(self) -> None:
        self.probe = LoopProbe(self.clock)
        self._started_ms = self.clock.monotonic_ms()

    def ready(self, services: Rooms, raft: Callable[[], RaftState]) -> None:
        """Clients are served."""
        self.services = services
        self.raft = raft
        self.phase = Phase.READY

    def stopping(self) -> None:
        self.phase = Phase.STOPPING

    @property
    def uptime_s(self) -> float:
        return (self.clock.monotonic_ms() - self._started_ms) / 1000
