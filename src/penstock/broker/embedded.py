"""A broker inside another process, on a thread with a loop of its own: what tests start."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import Future

from penstock.broker.broker import Broker
from penstock.broker.config import BrokerConfig
from penstock.broker.loop import new_loop

_STOP_TIMEOUT_S = 30.0


class Embedded:
    def __init__(self, config: Mapping[str, str], data_dir: str) -> None:
        """`config` has Kafka's names; listeners, roles and the node's id have defaults that suit one node."""
        self._config = BrokerConfig({**single_node(data_dir), **config})
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    def start(self) -> str:
        """Until clients can connect; the address to give them."""
        assert self._thread is None, "it is running already"
        ready: Future[str] = Future()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="penstock-broker", daemon=True)
        self._thread.start()
        return ready.result()

    def stop(self) -> None:
        """Safe to repeat."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        thread.join(_STOP_TIMEOUT_S)
        assert not thread.is_alive(), "the broker did not stop"

    def _run(self, ready: Future[str]) -> None:
        loop = new_loop()
        self._loop = loop
        try:
            loop.run_until_complete(self._serve(ready))
        except BaseException as fault:
            if not ready.done():
                ready.set_exception(fault)
            else:
                raise
        finally:
            loop.close()

    async def _serve(self, ready: Future[str]) -> None:
        self._stop = asyncio.Event()
        broker = Broker(self._config)
        await broker.start()
        ready.set_result(broker.address)
        await self._stop.wait()
        await broker.stop()


def single_node(data_dir: str, port: int = 0, host: str = "127.0.0.1") -> dict[str, str]:
    """The configuration of a cluster of one, without what has a default."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://{host}:{port},CONTROLLER://{host}:0",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": data_dir,
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
