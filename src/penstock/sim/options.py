"""What one run is like, drawn from its seed: every run leaves most dangers out and has a few at full strength."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from penstock.sim.network import Weather

_FIRST_FAULTS = (
    "kill",
    "power",
    "torn",
    "stop",
    "pause",
    "partition",
    "one-way",
    "reset",
    "sync-error",
    "write-error",
    "full-disk",
    "slow-disk",
    "clock",
    "client",
)
LATER_FAULTS = ("slow-link", "lost-disk", "bit-flip")
"""drawn by themselves: what a seed had before they were there, it still has"""
FAULTS = _FIRST_FAULTS + LATER_FAULTS
"""see `faults.Nemesis` for what each is"""

_EVENTS_A_SEGMENT_BYTE = 10
"""so that a long run has no more segments than a short one: a broker looks at each of them when it starts"""

_PORTION_BYTES_MIN = 1_024

MODERN_GROUPS_FROM = 1_001
"""from this seed on runs have consumer groups and share groups: those below are as they were recorded"""

RACK_FAULTS = ("kill", "power", "torn", "stop", "reset", "clock", "client")
"""beside the loss of a rack. None of them keeps a broker that stands out of the ISR, so that nearly all is read next
door"""


@dataclass(frozen=True, slots=True)
class Options:
    seed: int
    nodes: int
    events: int
    partitions: int
    flush: bool
    """flush.messages=1 on the topic: an ack waits for the disk"""
    segment_bytes: int
    weather: Weather
    producers: int
    readers: int
    """consumers by assign"""
    members: int
    """consumers of one group"""
    batch: int
    """records that a producer sends at once, at most"""
    value_bytes: int
    think_ms: int
    """what a client waits between two operations, at most"""
    job_us: int
    """what a job takes, at most"""
    faults: tuple[str, ...]
    fault_every_ms: int
    fault_ms: int
    """how long one lasts, at most"""
    transactors: int = 0
    """clients that write to several partitions in one transaction"""
    copiers: int = 0
    """clients that copy the topic, exactly once"""
    consumers: int = 0
    """members of one group by the consumer protocol (KIP-848)"""
    sharers: int = 0
    """members of one share group"""
    racks: int = 0
    """in which brokers and clients stand, by turns, and of which one is lost half-way; 0: every broker in its own"""

    @property
    def copies(self) -> int:
        return min(3, self.nodes)

    @property
    def min_insync(self) -> int:
        return 2 if self.copies == 3 else 1

    @property
    def portion_bytes(self) -> int:
        """What a client takes of a partition at once. It grows with the run as segments do: whoever begins at the start
        of the log when all is mended has no more portions before it in a long run than in a short one."""
        return max(_PORTION_BYTES_MIN, self.events // _EVENTS_A_SEGMENT_BYTE)


def draw(seed: int, nodes: int = 3, events: int = 10_000) -> Options:
    random = Random(f"options {seed}")
    later = Random(f"later options {seed}")
    transactional = Random(f"transactions {seed}")
    groups = Random(f"groups {seed}")
    modern = seed >= MODERN_GROUPS_FROM
    flush = nodes == 1 or random.random() < 0.5
    return Options(
        seed=seed,
        nodes=nodes,
        events=events,
        partitions=random.choice((1, 1, 2, 3)),
        flush=flush,
        segment_bytes=max(random.choice((1_000, 4_000, 50_000, 1_048_576)), events // _EVENTS_A_SEGMENT_BYTE),
        weather=Weather(
            latency_us=random.choice((50, 200, 1_000, 5_000)),
            jitter_us=random.choice((20, 300, 3_000)),
            loss=random.choice((0.0, 0.0, 0.002, 0.02)),
            split=random.choice((0.0, 0.0, 0.1)),
        ),
        producers=random.choice((1, 2, 3)),
        readers=random.choice((0, 1, 1)),
        members=random.choice((0, 1, 2)),
        batch=random.choice((1, 3, 10)),
        value_bytes=random.choice((10, 100, 400)),
        think_ms=random.choice((2, 10, 40)),
        job_us=random.choice((500, 3_000, 20_000)),
        faults=tuple(kind for kind in _FIRST_FAULTS if random.random() < 0.45)
        + tuple(kind for kind in LATER_FAULTS if later.random() < 0.3),
        fault_every_ms=random.choice((300, 1_000, 3_000)),
        fault_ms=random.choice((200, 1_000, 4_000)),
        transactors=transactional.choice((0, 0, 1, 2)),
        copiers=transactional.choice((0, 0, 1)),
        consumers=groups.choice((0, 2, 3)) if modern else 0,
        sharers=groups.choice((0, 2, 3)) if modern else 0,
    )


def draw_racks(seed: int, nodes: int = 3, events: int = 10_000, racks: int = 3, latency_ms: int = 20) -> Options:
    """Racks with a distance between them, in each of them brokers, a producer and a reader."""
    options = draw(seed, nodes, events)
    return replace(
        options,
        weather=replace(options.weather, between_racks_us=latency_ms * 1000),
        producers=racks,
        readers=racks,
        faults=tuple(kind for kind in options.faults if kind in RACK_FAULTS),
        transactors=0,
        copiers=0,
        consumers=0,
        sharers=0,
        racks=racks,
    )
