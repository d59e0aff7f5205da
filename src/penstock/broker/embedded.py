"""A broker inside another process, on a thread with a loop of its own: what tests start."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Mapping
from concurrent.futures import Future

from penstock.broker.broker import Broker
from penstock.broker.config import BrokerConfig
from penstock.broker.loop import new_loop
from penstock.broker.serving import serve

_STOP_TIMEOUT_S = 30.0


class Embedded:
    def __init__(self, config: Mapping[str, str], data_dir: str) -> None:
        """`config` has Kafka's names; listeners, roles and the node's id have defaults that suit one node."""
        self._config = BrokerConfig({**single_node(data_dir), **config})
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event

    def start(self) -> str:
        """Until clients can connect; the address to give them."""
        return self.begin().result()

    def begin(self) -> Future[str]:
        """Done when clients can connect. The nodes of a cluster begin together: none is ready without a majority."""
        assert self._thread is None, "it is running already"
        ready: Future[str] = Future()
        self._loop, self._stop = new_loop(), asyncio.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="penstock-broker", daemon=True)
        self._thread.start()
        return ready

    def ask_to_stop(self) -> None:
        if self._thread is not None:
            # A broker that could not start has closed its loop already.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)

    def stop(self) -> None:
        """Safe to repeat."""
        self.ask_to_stop()
        thread, self._thread = self._thread, None
        if thread is None:
            return
        thread.join(_STOP_TIMEOUT_S)
        assert not thread.is_alive(), "the broker did not stop"

    def _run(self, ready: Future[str]) -> None:
        loop = self._loop
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
        await serve(Broker(self._config), self._stop, ready.set_result)
        if not ready.done():
            ready.cancel()


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
