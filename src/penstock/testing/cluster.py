"""`Cluster`: a broker in this process, on a thread of its own, with data that goes away.

with Cluster() as cluster:
    Producer(cluster.bootstrap_servers)
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from types import TracebackType
from typing import Protocol, Self

from penstock.broker.embedded import Embedded

QUICK: dict[str, str] = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
"""What makes a test quick without changing what a client can see of the protocol."""

MEMORY_DIRECTORY = "/dev/shm"


class EmbeddedBroker(Protocol):
    """What the broker offers for running inside another process."""

    def start(self) -> str: ...

    def stop(self) -> None: ...


class Cluster:
    """Starts on entering, in a few milliseconds; everything it wrote is removed on leaving.

    `config` takes Kafka's broker configuration names. With `data_dir` the data stays, and a later cluster on the same
    directory finds it again.
    """

    def __init__(
        self, config: Mapping[str, str] | None = None, *, data_dir: str | os.PathLike[str] | None = None
    ) -> None:
        self.config = {**QUICK, **(config or {})}
        self._kept = os.fspath(data_dir) if data_dir is not None else None
        self._directory: str | None = None
        self._broker: EmbeddedBroker | None = None
        self._address: str | None = None

    @property
    def bootstrap_servers(self) -> str:
        assert self._address is not None, "the cluster is not running: use it as `with Cluster() as cluster:`"
        return self._address

    @property
    def data_dir(self) -> str:
        assert self._directory is not None, "the cluster is not running: use it as `with Cluster() as cluster:`"
        return self._directory

    def start(self) -> Self:
        assert self._broker is None, "the cluster is running already"
        self._directory = self._kept or tempfile.mkdtemp(prefix="penstock-", dir=_quick_directory())
        try:
            broker: EmbeddedBroker = Embedded(dict(self.config), self._directory)
            self._address = broker.start()
        except BaseException:
            self._remove_data()
            raise
        self._broker = broker
        return self

    def stop(self) -> None:
        """Safe to repeat."""
        broker, self._broker, self._address = self._broker, None, None
        try:
            if broker is not None:
                broker.stop()
        finally:
            self._remove_data()

    def restart(self) -> Self:
        """Stops the broker cleanly and starts it again on the same data; the port may be another."""
        assert self._broker is not None, "the cluster is not running"
        self._broker.stop()
        self._broker = Embedded(dict(self.config), self.data_dir)
        self._address = self._broker.start()
        return self

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _remove_data(self) -> None:
        directory, self._directory = self._directory, None
        if directory is not None and self._kept is None:
            shutil.rmtree(directory, ignore_errors=True)


def _quick_directory() -> str | None:
    """Memory where there is some: a test's data need not reach a disk. None is the system's temporary directory."""
    return MEMORY_DIRECTORY if os.access(MEMORY_DIRECTORY, os.W_OK) else None
