"""A real broker inside a test process, and the pytest plug-in that hands it out.

Doors: `Cluster` (a context manager), the fixtures of `penstock.testing.plugin`, which pytest finds by itself, and
`simulation.simulate` (your own asyncio code against brokers, network, disks and time in simulation, by a seed).

Invariants:
1. Importing this package or the plug-in loads neither a broker nor a client: projects that do not use it pay nothing.
2. Whatever a cluster, topic, producer or consumer made for a test is gone after it: threads, files and topics.
3. Nothing is shared between test processes unless --kafka-bootstrap-servers says so; then names are random.

It never touches a cluster's existing topics and groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.testing.cluster import Cluster
    from penstock.testing.simulation import simulate

__all__ = ["Cluster", "simulate"]


def __getattr__(name: str) -> object:
    if name == "Cluster":
        from penstock.testing.cluster import Cluster  # noqa: PLC0415 the broker is loaded by the first who wants one

        return Cluster
    if name == "simulate":
        from penstock.testing.simulation import simulate  # noqa: PLC0415 the simulator, likewise

        return simulate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
