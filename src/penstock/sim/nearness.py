"""Where readers' records come from in runs with racks (KIP-392): from their own, while a replica there is in sync.

N1  a broker gives records to a reader in another rack only as the leader, and only while it knows of no replica in the
    reader's: none that is in the ISR, on a broker that is neither fenced nor stopping, and that has fetched in this
    leader epoch with the wanted offset within its log

It is judged where the answer is made, by what the broker that makes it knows at that moment, and no time is allowed
for: a leader sends the reader away with the very answer that would have had the records. Where they arrive it could
only be judged loosely:

- An answer that was right when it was given may be seen much later. A replica comes into the ISR while a member of a
  group, which has the records in hand, waits seconds for a commit because the coordinator's broker has died.
- A new leader does not know how far its followers are until each has fetched from it, though they are in its ISR from
  the first moment on. A connection whose first segment is lost takes half a second; until then the leader sends nobody
  to them, as Apache's does. One that does not come at all leaves the ISR after replica.lag.time.max.ms.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from penstock.broker.fetching import CONSUMER, Fetching
from penstock.core.replication.partition import Partition
from penstock.sim.probes import followers_of
from penstock.sim.process import running_process


class Nearness:
    def __init__(
        self, brokers: Mapping[int, str], hosts: Mapping[str, str], topic: str, told: Callable[[str, str], None]
    ) -> None:
        """`brokers`, `hosts`: the rack of each broker, and of each host, clients' too."""
        self.near = 0
        """answers with records that came from the reader's rack"""
        self.far = 0
        self._brokers = brokers
        self._hosts = hosts
        self._topic = topic
        self._tell = told

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """While it is open, every answer to a consumer is heard."""
        door, before = "collect", Fetching.collect
        setattr(Fetching, door, self._collect(before))
        try:
            yield
        finally:
            setattr(Fetching, door, before)

    def read(self, rack: str, node_id: int) -> None:
        """A reader in this rack has got records from this broker."""
        if self._brokers[node_id] == rack:
            self.near += 1
        else:
            self.far += 1

    def gives(self, host: str, to: str, partition: Partition, offset: int) -> None:
        """The broker on `host` answers the reader on the host `to` with records from `offset` on."""
        rack = self._hosts[to]
        if self._hosts[host] == rack or partition.name.topic != self._topic:
            return
        if partition.leading is None:
            self._tell("N1", f"{partition.name}: a reader in {rack} is served by {host}, which does not lead it")
        near = [one for one in followers_of(partition) if one.serves(offset) and self._brokers[one.broker_id] == rack]
        if near:
            self._tell("N1", f"{partition.name}: a reader in {rack} is served {offset} by {host}, and not by {near[0]}")

    def _collect(self, collect: Any) -> Any:
        def heard(fetching: Any, session: Any, wanted: Any, **more: Any) -> Any:
            collected = collect(fetching, session, wanted, **more)
            if wanted.replica_id == CONSUMER:
                for place, _, fetched in collected.outcomes:
                    if fetched is not None and fetched.size_bytes:
                        partition = fetching._partitions.find(place.topic, place.index)
                        self.gives(running_process().host, wanted.reader.peer.host, partition, place.fetch_offset)
            return collected

        return heard
