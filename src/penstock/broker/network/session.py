"""One client's session: who it is, and the way of each of its requests to a handler and back.

A request is looked up in the table of APIs. Handlers of the data path get the raw frame; all others get the decoded
message and return one, at once or as a coroutine. What only the active controller can answer is passed on to it as it
came, where that is another node.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple, cast

from penstock.base.errors import DecodeError, ErrorCode, KafkaError
from penstock.base.limits import REQUEST_ELEMENTS_MAX
from penstock.broker.journal import Journal
from penstock.broker.metrics.watch import Watch
from penstock.broker.network.reply import CloseConnection, Parts, Reply
from penstock.broker.network.table import Row, Table
from penstock.core.security.acl import CLUSTER_NAME, Operation, Resource
from penstock.core.security.authorizer import Authorizer, operation_bits
from penstock.core.security.principals import Principal
from penstock.protocol.frames import LENGTH_BYTES, RequestHeader, decode_request_header, response_frame

log = Journal(__name__)

_API_VERSIONS = 18


class Peer(NamedTuple):
    """Where a session comes from and whom it speaks for."""

    principal: Principal
    host: str
    port: int
    listener: str
    """the listener's name: what Metadata answers depends on it"""


class Session:
    def __init__(self, peer: Peer, table: Table, authorizer: Authorizer, services: Any, watch: Watch) -> None:
        self.peer = peer
        self.services = services
        self.client_id = ""
        self.client_software = ("", "")
        """name and version, as ApiVersions told them"""
        self.barrier = False
        """whether the request handled last holds back the ones behind it"""
        self.at_close: Callable[[], None] | None = None
        """called when the connection is gone"""
        self.table = table
        self._authorizer = authorizer
        self._watch = watch
        self._tasks: set[asyncio.Task[None]] = set()

    def handle(self, body: bytearray | memoryview) -> Parts | Reply:
        """Start one request. Its answer now, or a place for it. CloseConnection or DecodeError where it has none."""
        header, at = decode_request_header(body)
        row = self.table.find(header.api_key)
        if row is None:
            raise CloseConnection(f"API key {header.api_key} is not served here")
        if header.client_id is not None:
            self.client_id = header.client_id
        if not row.min_version <= header.api_version <= row.max_version:
            if header.api_key != _API_VERSIONS:
                raise CloseConnection(f"{row.name} version {header.api_version} is not served")
            header = header._replace(api_version=0)
            return self._finish(row, header, row.handler.unsupported(self))
        row.requests += 1
        self.barrier = not row.overlaps
        watch = self._watch
        began = watch.now_s()
        if row.raw:
            answer = self._call_raw(row, header, body, at)
        else:
            request = row.request_class.decode(memoryview(body)[at:], header.api_version, REQUEST_ELEMENTS_MAX)
            if row.forwarded and not self.services.controller.is_active:
                answer = self._pass_on(row, header, request, bytes(body))
            else:
                answer = self._call(row, header, request)
        watch.note(row.name, watch.now_s() - began)
        return answer

    def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        if self.at_close is not None:
            self.at_close()

    def speaking_for(self, peer: Peer) -> Session:
        """A session for somebody whose request has come over this one."""
        return Session(peer, self.table, self._authorizer, self.services, self._watch)

    async def answer(self, row: Row, header: RequestHeader, request: Any) -> Any:
        """The answer of a row's handler to one request that came by no connection of its own."""
        answer = row.handler.handle(self, header, request)
        return await answer if inspect.isawaitable(answer) else answer

    def allows(self, operation: Operation, resource: Resource, name: str = CLUSTER_NAME) -> bool:
        peer = self.peer
        return self._authorizer.allows(peer.principal, peer.host, operation, resource, name)

    def operation_bits(self, resource: Resource, name: str = CLUSTER_NAME) -> int:
        return operation_bits(self._authorizer, self.peer.principal, self.peer.host, resource, name)

    def _call_raw(self, row: Row, header: RequestHeader, body: bytearray | memoryview, at: int) -> Parts | Reply:
        try:
            return cast("Parts | Reply", row.handler.handle(self, header, body, at))
        except (CloseConnection, DecodeError):
            raise
        except Exception as bug:
            log.exception("request failed", api=row.name, version=header.api_version, client_id=self.client_id)
            raise CloseConnection(f"{row.name} failed unexpectedly") from bug

    def _call(self, row: Row, header: RequestHeader, request: Any) -> Parts | Reply:
        try:
            answer = row.handler.handle(self, header, request)
            if inspect.isawaitable(answer):
                return self._await(row, header, request, answer)
            return self._finish(row, header, answer)
        except (CloseConnection, DecodeError):
            raise
        except Exception as fault:
            return self._refused(row, header, request, fault)

    def _pass_on(self, row: Row, header: RequestHeader, request: Any, frame: bytes) -> Reply:
        return self._await(row, header, request, self.services.forward(self.peer, frame))

    def _await(self, row: Row, header: RequestHeader, request: Any, answer: Awaitable[Any]) -> Reply:
        reply = Reply()
        task = asyncio.get_running_loop().create_task(
            self._run(row, header, request, self._watch.timed(row.name, answer), reply)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if inspect.iscoroutine(answer):
            # A task cancelled before its first step has awaited nothing: the handler's coroutine is ours to end.
            task.add_done_callback(lambda _: answer.close())
        reply.abandon = partial(_cancel, task)
        return reply

    async def _run(self, row: Row, header: RequestHeader, request: Any, answer: Awaitable[Any], reply: Reply) -> None:
        try:
            reply.complete(self._finish(row, header, await answer))
        except CloseConnection as fault:
            reply.refuse(fault)
        except Exception as fault:
            try:
                reply.complete(self._refused(row, header, request, fault))
            except CloseConnection as closing:
                reply.refuse(closing)

    def _finish(self, row: Row, header: RequestHeader, response: Any) -> Parts:
        if type(response) is bytes:  # a controller's answer, which has its header already
            return [len(response).to_bytes(LENGTH_BYTES, "big") + response]
        version = header.api_version
        return [response_frame(header.api_key, version, header.correlation_id, response.encode(version))]

    def _refused(self, row: Row, header: RequestHeader, request: Any, fault: Exception) -> Parts:
        """The request as a whole has failed. A KafkaError is told as it is; anything else is a bug of ours: its story
        goes to the log, and UNKNOWN_SERVER_ERROR to the client, if there is room for it."""
        if not isinstance(fault, KafkaError):
            log.exception("request failed", api=row.name, version=header.api_version, client_id=self.client_id)
            fault = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        try:
            return self._finish(row, header, _refusal(row, request, fault))
        except KafkaError:  # this version has no room for it
            raise CloseConnection(f"{row.name} failed unexpectedly") from None


def _refusal(row: Row, request: Any, error: KafkaError) -> Any:
    """Handlers whose answers have an error for each item, but none of their own, say how they are refused."""
    refused = getattr(row.handler, "refused", None)
    if refused is not None:
        return refused(request, error)
    response = row.response_class()
    if not hasattr(response, "error_code"):
        raise CloseConnection(f"{row.name} failed: {error.code.name}")
    response.error_code = int(error.code)
    return response


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
