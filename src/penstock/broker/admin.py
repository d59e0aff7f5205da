"""The admin port: /metrics and /health over HTTP, for Prometheus and for whoever starts and watches brokers.

As much of HTTP/1.1 as they need: one GET or HEAD a connection, a bounded head, one deadline for all. A scrape that
comes while another is being collected gets the same answer.
"""

from __future__ import annotations

import asyncio
import json
import socket
from http import HTTPStatus
from typing import NamedTuple

from penstock.base.limits import ADMIN_CONNECTIONS_MAX, ADMIN_HEAD_BYTES_MAX
from penstock.broker.config import ADMIN_LISTENER, ConfigFault, Listener
from penstock.broker.journal import Journal
from penstock.broker.metrics.collect import collect
from penstock.broker.metrics.sources import Phase, Sources
from penstock.broker.metrics.text import CONTENT_TYPE

log = Journal(__name__)

DEADLINE_S = 10.0
_FLUSH_S = 1.0
"""for the answer to leave when its time is over"""
_PLAIN = "text/plain; charset=utf-8"
_JSON = "application/json"
_INDEX = "This is a Penstock broker.\n/metrics  in Prometheus's text format\n/health   200 when clients are served\n"


class Answer(NamedTuple):
    status: HTTPStatus
    content_type: str
    body: bytes

    def encoded(self, *, head_only: bool = False) -> bytes:
        lines = [
            f"HTTP/1.1 {self.status.value} {self.status.phrase}",
            f"Content-Type: {self.content_type}",
            f"Content-Length: {len(self.body)}",
            "Connection: close",
        ]
        if self.status is HTTPStatus.METHOD_NOT_ALLOWED:
            lines.append("Allow: GET, HEAD")
        head = "\r\n".join([*lines, "", ""]).encode()
        return head if head_only else head + self.body


class Admin:
    def __init__(self, address: Listener, sources: Sources, *, deadline_s: float = DEADLINE_S) -> None:
        self._address = address
        self._sources = sources
        self._deadline_s = deadline_s
        self._server: asyncio.Server | None = None
        self._scrape: asyncio.Task[bytes] | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        """Bind and answer; the port."""
        bound = _bind(self._address)
        self._server = await asyncio.start_server(self._accept, sock=bound, limit=ADMIN_HEAD_BYTES_MAX)
        self._sources.probe.start()
        return int(bound.getsockname()[1])

    async def close(self) -> None:
        """Safe to repeat."""
        self._sources.probe.stop()
        if self._server is not None:
            self._server.close()
        tasks = [*self._open, *([self._scrape] if self._scrape is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= ADMIN_CONNECTIONS_MAX:
            writer.write(_told(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections").encoded())
            writer.close()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, one answer. Where the peer does not take it in time, the connection is cut."""
        writer.transport.set_write_buffer_limits(high=0)
        until = asyncio.get_running_loop().time() + self._deadline_s
        try:
            encoded = await self._exchange(reader, until)
            if encoded:
                writer.write(encoded)
                async with asyncio.timeout_at(until + _FLUSH_S):
                    await writer.drain()
        except (TimeoutError, OSError):
            writer.transport.abort()
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, until: float) -> bytes:
        """The answer to what comes in; empty where the peer left without asking."""
        try:
            async with asyncio.timeout_at(until):
                head = await reader.readuntil(b"\r\n\r\n")
                method, answer = await self._answer(head)
            return answer.encoded(head_only=method == "HEAD")
        except TimeoutError:
            return _told(HTTPStatus.REQUEST_TIMEOUT, "the request took too long").encoded()
        except asyncio.LimitOverrunError:
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            return _told(status, f"the head of a request may have {ADMIN_HEAD_BYTES_MAX} bytes").encoded()
        except asyncio.IncompleteReadError:
            return b""

    async def _answer(self, head: bytes) -> tuple[str, Answer]:
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return "", _told(HTTPStatus.BAD_REQUEST, "this is not an HTTP/1.1 request")
        method, target, _ = words
        if method not in ("GET", "HEAD"):
            return method, _told(HTTPStatus.METHOD_NOT_ALLOWED, f"{method} is not served here: use GET")
        match target.partition("?")[0]:
            case "/metrics":
                return method, await self._metrics()
            case "/health":
                return method, self._health()
            case "/":
                return method, Answer(HTTPStatus.OK, _PLAIN, _INDEX.encode())
            case path:
                return method, _told(HTTPStatus.NOT_FOUND, f"there is no {path}; see / for what there is")

    async def _metrics(self) -> Answer:
        if self._sources.phase is not Phase.READY:
            return _told(HTTPStatus.SERVICE_UNAVAILABLE, f"the broker is {self._sources.phase.value}")
        if self._scrape is None or self._scrape.done():
            self._scrape = asyncio.get_running_loop().create_task(collect(self._sources))
        try:
            return Answer(HTTPStatus.OK, CONTENT_TYPE, await asyncio.shield(self._scrape))
        except Exception:
            log.exception("metrics could not be collected")
            return _told(HTTPStatus.INTERNAL_SERVER_ERROR, "metrics could not be collected; the broker's log says why")

    def _health(self) -> Answer:
        sources = self._sources
        facts: dict[str, object] = {"status": sources.phase.value, "node_id": sources.node_id}
        ready = sources.phase is Phase.READY
        if ready:
            facts |= {
                "cluster_id": sources.services.cluster_id,
                "uptime_s": sources.uptime_s,
                "partitions": len(sources.services.partitions),
                "writes_refused": sources.services.partitions.refusal,
            }
        status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
        return Answer(status, _JSON, json.dumps(facts).encode() + b"\n")


def _told(status: HTTPStatus, text: str) -> Answer:
    return Answer(status, _PLAIN, text.encode("utf-8", "replace") + b"\n")


def _bind(address: Listener) -> socket.socket:
    host = address.host.strip("[]")
    dual = not host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual or ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, address.port), family=family, dualstack_ipv6=dual)
    except OSError as fault:
        text = f"{ADMIN_LISTENER}: {address.host}:{address.port} cannot be bound: {fault.strerror or fault}."
        raise ConfigFault(f"{text} Choose another port, or 0 for a free one.") from None
