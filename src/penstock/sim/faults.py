"""What goes wrong and when: one fault after another, of the kinds that the options name, each mended after a while.

A budget keeps the data survivable, so that every loss is a bug: a host loses power only where what was acked is on its
disk, or where others that stand hold it and none of them crashes until it has caught up (`survival`); a disk that
failed a sync is power-cycled before it is trusted again. `stop` mends everything: then the liveness phase begins.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable
from random import Random

from penstock.sim.cluster import Node, SimCluster
from penstock.sim.network import Network
from penstock.sim.options import Options
from penstock.sim.rot import Flip, flip
from penstock.sim.survival import can_lose, is_whole

_CRASHING = ("kill", "power", "torn", "stop", "sync-error", "write-error", "full-disk", "lost-disk")
"""kinds after which a broker comes back as one that may have lost something"""
_CLOCK_JUMP_MS = 3_600_000
_ROOM_BYTES = 4_096
_SLOW_JOB_US = 500_000
_NODES_WITH_A_SPARE = 3
_SLOW_LINK_US = 300_000
_TORN_CHANGES = 60
"""a `torn` power loss comes within so many changes of the disk"""


class Nemesis:
    def __init__(
        self,
        cluster: SimCluster,
        options: Options,
        clients: Callable[[], None],
        hosts: list[str],
        topic: str = "",
    ) -> None:
        """`clients`: makes one of them crash. `hosts`: where they are. `topic`: whose cold data may rot."""
        self.struck: Counter[str] = Counter()
        """how often each kind has happened"""
        self._cluster = cluster
        self._network: Network = cluster.network
        self._loop = cluster.loop
        self._options = options
        self._random = Random(f"faults {options.seed}")
        self._topic = topic
        self._flip: Flip | None = None
        self._crash_client = clients
        self._client_hosts = hosts
        self._over = False
        self.held = False
        """nothing new strikes for now"""
        self._mending: Node | None = None
        """who has lost, or is losing, what others hold: until all are in sync again no other may crash"""
        self._kinds: dict[str, Callable[[Node], bool]] = {
            "kill": self._kill,
            "power": self._power,
            "torn": self._torn,
            "stop": self._stop,
            "pause": self._pause,
            "partition": self._partition,
            "one-way": self._one_way,
            "reset": self._reset,
            "sync-error": self._sync_error,
            "write-error": self._write_error,
            "full-disk": self._full_disk,
            "slow-disk": self._slow_disk,
            "clock": self._clock,
            "client": self._client,
            "slow-link": self._slow_link,
            "lost-disk": self._lost_disk,
            "bit-flip": self._bit_flip,
        }

    def begin(self) -> None:
        if self._options.faults:
            self._arm()

    def stop(self) -> None:
        """No more faults, and everything is mended. A broker that stands may go on as it is."""
        self._over = True
        self._network.heal()
        self._cluster.job_us = self._options.job_us
        for node in self._cluster.nodes:
            node.disk.calm()
            # Two jumps may come to more than an hour: such a broker refuses the times of all producers, and rightly so.
            node.clock.skew_ms = 0
            if node.lost:
                continue
            self._cluster.slow(node, self._options.job_us)
            self._cluster.resume(node)
            if node.suspect:
                self._cluster.power_loss(node)
            self._cluster.start(node)

    def lose_rack(self) -> str:
        """Every broker of some rack goes dark for good, where the others can do without them. The name; "" for none."""
        nodes = self._cluster.nodes
        racks: dict[str, list[Node]] = {}
        for node in nodes:
            racks.setdefault(node.rack, []).append(node)
        losable = [rack for rack, there in racks.items() if can_lose(nodes, there)]
        if not losable:
            return ""
        rack = self._random.choice(losable)
        for node in racks[rack]:
            self._cluster.lose(node)
        self.struck["rack"] += 1
        self._loop.note(rack.encode())
        return rack

    def _arm(self) -> None:
        delay_us = int(self._random.expovariate(1) * self._options.fault_every_ms * 1000)
        self._loop.after(1 + delay_us, None, b"fault", self._strike)

    def _strike(self) -> None:
        if self._over:
            return
        if self.held:
            self._arm()
            return
        kind = self._random.choice(self._options.faults)
        node = self._random.choice(self._cluster.nodes)
        if not node.lost and self._may_strike(kind, node) and self._kinds[kind](node):
            self.struck[kind] += 1
            self._loop.note(kind.encode())
        self._arm()

    def _later(self, mend: Callable[[], None]) -> None:
        """Mended after a while, or when all faults end."""
        delay_us = 1 + self._random.randrange(self._options.fault_ms * 1000)
        self._loop.after(delay_us, None, b"mend", lambda: None if self._over else mend())

    def _kill(self, node: Node) -> bool:
        if not node.up or node.suspect:
            return False
        self._cluster.kill(node)
        self._later(lambda: self._cluster.start(node))
        return True

    def _power(self, node: Node) -> bool:
        if not self._may_lose(node):
            return False
        self._cluster.power_loss(node)
        self._later(lambda: self._cluster.start(node))
        return True

    def _torn(self, node: Node) -> bool:
        """Power goes in the middle of one of the next operations of the disk."""
        if not node.up or not self._may_lose(node):
            return False
        node.disk.power_loss_after(1 + self._random.randrange(_TORN_CHANGES))
        self._later(lambda: self._restart_after_torn(node))
        return True

    def _restart_after_torn(self, node: Node) -> None:
        """It may have lost its power long ago, and have come back since by another fault's hand."""
        if node.up and node.disk.is_about_to_stop:
            self._cluster.power_loss(node)
        self._cluster.start(node)

    def _stop(self, node: Node) -> bool:
        if not node.ready or node.suspect:
            return False
        self._cluster.stop(node)
        self._later(lambda: self._cluster.start(node))
        return True

    def _pause(self, node: Node) -> bool:
        if not node.up:
            return False
        self._cluster.pause(node)
        self._later(lambda: self._cluster.resume(node))
        return True

    def _partition(self, node: Node) -> bool:
        """Some hosts are cut from the others, both ways."""
        hosts = [one.host for one in self._cluster.nodes] + self._client_hosts
        side = [host for host in hosts if self._random.random() < 0.5]
        for one in side:
            for other in hosts:
                if other not in side:
                    self._network.cut(one, other)
                    self._network.cut(other, one)
        self._later(self._network.heal)
        return True

    def _one_way(self, node: Node) -> bool:
        others = [one.host for one in self._cluster.nodes if one is not node] + self._client_hosts
        other = self._random.choice(others)
        one, two = (node.host, other) if self._random.random() < 0.5 else (other, node.host)
        self._network.cut(one, two)
        self._later(self._network.heal)
        return True

    def _reset(self, node: Node) -> bool:
        return self._network.reset_one()

    def _sync_error(self, node: Node) -> bool:
        if not node.ready or not self._may_lose(node):
            return False
        node.disk.fail_next("sync", errno.EIO, path_contains=self._random.choice((".log", "-0/", "")))
        return self._cycle_later(node)

    def _write_error(self, node: Node) -> bool:
        if not node.ready or not self._may_lose(node):
            return False
        if self._random.random() < 0.5:
            node.disk.short_write_next(self._random.randrange(60))
        else:
            node.disk.fail_next("write", errno.EIO, path_contains=".log")
        return self._cycle_later(node)

    def _cycle_later(self, node: Node) -> bool:
        """The disk is not to be trusted: the host is switched off and on again."""
        node.suspect = True
        self._later(lambda: self._cycle(node))
        return True

    def _cycle(self, node: Node) -> None:
        """Unless another fault has done it meanwhile: nobody expects that power goes once more."""
        if node.suspect:
            self._cluster.power_loss(node)
        self._later(lambda: self._cluster.start(node))

    def _full_disk(self, node: Node) -> bool:
        node.disk.capacity_bytes = node.disk.used_bytes() + self._random.randrange(_ROOM_BYTES)
        self._later(node.disk.unlimited)
        return True

    def _slow_disk(self, node: Node) -> bool:
        self._cluster.slow(node, _SLOW_JOB_US)
        self._later(lambda: self._cluster.slow(node, self._options.job_us))
        return True

    def _clock(self, node: Node) -> bool:
        node.clock.skew_ms += self._random.randrange(-_CLOCK_JUMP_MS, _CLOCK_JUMP_MS)
        return True

    def _lost_disk(self, node: Node) -> bool:
        """All that it had is gone, who it was in the quorum too; the others hold everything."""
        nodes = self._cluster.nodes
        if len(nodes) < _NODES_WITH_A_SPARE or not is_whole(nodes) or not can_lose(nodes, [node]):
            return False
        self._mending = node
        self._cluster.lose_disk(node)
        self._later(lambda: self._cluster.start(node))
        return True

    def _bit_flip(self, node: Node) -> bool:
        """Cold data rots in one copy: the scrubber finds it, and has it repaired from another."""
        nodes = self._cluster.nodes
        if len(nodes) < _NODES_WITH_A_SPARE or self.is_damaged or not is_whole(nodes) or not can_lose(nodes, []):
            return False
        self._flip = flip(node, self._topic, self._random)
        if self._flip is None:
            return False
        self._mending = node
        return True

    @property
    def is_damaged(self) -> bool:
        """A bit that was turned is not as it was."""
        return self._flip is not None and not self._flip.is_mended

    def _slow_link(self, node: Node) -> bool:
        """Everything to and from a host takes longer: what others say to one another overtakes it."""
        host = self._random.choice([node.host, *self._client_hosts])
        self._network.slow(host, 1 + self._random.randrange(_SLOW_LINK_US))
        self._later(lambda: self._network.slow(host, 0))
        return True

    def _client(self, node: Node) -> bool:
        self._crash_client()
        return True

    def _may_strike(self, kind: str, node: Node) -> bool:
        if self._mending is None or kind not in _CRASHING or (self._mending is node and not self.is_damaged):
            return True
        # Power that is to go in the middle of an operation goes later, when all may be whole once more.
        to_come = self._mending.suspect or not self._mending.disk.is_sound
        if is_whole(self._cluster.nodes) and not self.is_damaged and not to_come:
            self._mending = None
        return self._mending is None

    def _may_lose(self, node: Node) -> bool:
        """Whether what is in this host's page cache may go now; then it is going, and the others hold it."""
        if self._options.flush:
            return True
        if self._mending is not node and not can_lose(self._cluster.nodes, [node]):
            return False
        self._mending = node
        return True
