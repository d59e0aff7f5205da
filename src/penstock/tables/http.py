"""The HTTP interface of tables, as an ASGI application. It only reads.

GET  /tables                                          the tables
GET  /tables/TOPIC                                    how far it is, and how large
GET  /tables/TOPIC/keys/KEY                           one key
GET  /tables/TOPIC/keys?from=&to=&prefix=&limit=&after=    a page of keys
POST /tables/TOPIC/get   {"keys": [...]}              several keys at one moment
GET  /health, /metrics

Of any request about keys: `key_format` and `value_format` in place of the table's own, `min_offsets=P:OFFSET,...` with
`wait_ms` for what the caller wrote himself. Errors are {"error": {"code", "message", ...}}.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from penstock.tables.entries import Entry
from penstock.tables.errors import NotReached, StillLoading, StoreDamaged, TableError
from penstock.tables.http_answers import Refusal, Served, entry_body, etag, etag_matches, json_answer, status_body
from penstock.tables.http_metrics import Meters
from penstock.tables.http_parameters import Asked, asked, read_keys
from penstock.tables.key_formats import BASE64, BadKey
from penstock.tables.limits import BATCH_BYTES_MAX, PAGE_BYTES_MAX
from penstock.tables.store import Page
from penstock.tables.table import Table
from penstock.tables.value_formats import content_type

log = logging.getLogger("penstock.tables")
Endpoint = Callable[[Request], Awaitable[Response]]


def application(tables: Mapping[str, Served]) -> ASGIApp:
    """The interface of these tables, by topic."""
    doors = Doors(tables)
    routes = [
        Route("/tables/{topic}/keys/{key:path}", doors.counted("key", doors.key)),
        Route("/tables/{topic}/keys", doors.counted("keys", doors.keys)),
        Route("/tables/{topic}/get", doors.counted("get", doors.several), methods=["POST"]),
        Route("/tables/{topic}", doors.counted("table", doors.table)),
        Route("/tables", doors.counted("tables", doors.all_tables)),
        Route("/health", doors.health),
        Route("/metrics", doors.metrics),
    ]
    handlers: Mapping[Any, Any] = {HTTPException: _unrouted, Exception: _broken}
    return Starlette(routes=routes, exception_handlers=handlers)


class Doors:
    def __init__(self, tables: Mapping[str, Served]) -> None:
        self._tables = tables
        self._meters = Meters({topic: served.table for topic, served in tables.items()})

    def counted(self, name: str, endpoint: Endpoint) -> Endpoint:
        async def answer(request: Request) -> Response:
            began = self._meters.now()
            try:
                response = await endpoint(request)
            except Refusal as refusal:
                response = refusal.answer()
            except Exception as error:
                response = _refusal(error).answer()
            self._meters.served(name, response.status_code, began)
            return response

        return answer

    async def key(self, request: Request) -> Response:
        served = self._served(request)
        ask = asked(request, served)
        key = ask.key_format.parse(_key_text(request))
        await _reach(served.table, ask)
        entry = served.table.get(key)
        if entry is None:
            raise Refusal(404, "no_such_key", f"table {served.table.topic} has no key {_key_text(request)!r}")
        tag = etag(served.table, entry)
        headers = {"etag": tag, "cache-control": "no-cache"}
        if etag_matches(request.headers.get("if-none-match"), tag):
            return Response(status_code=304, headers=headers)
        if ask.raw:
            headers["x-penstock-record"] = f"{entry.partition}:{entry.offset}:{entry.timestamp_ms}"
            return Response(entry.value, media_type=content_type(ask.value_format, entry.value), headers=headers)
        return json_answer(entry_body(entry, ask), headers=headers)

    async def keys(self, request: Request) -> Response:
        served = self._served(request)
        ask = asked(request, served)
        spans = ask.spans()
        await _reach(served.table, ask)
        page = _page(served.table, spans, ask)
        following = BASE64.show(page.entries[-1].key) if page.more else None
        return json_answer({"entries": [entry_body(entry, ask) for entry in page.entries], "next": following})

    async def several(self, request: Request) -> Response:
        served = self._served(request)
        ask = asked(request, served)
        keys = [ask.key_format.parse(text) for text in await read_keys(request)]
        await _reach(served.table, ask)
        entries = served.table.get_many(keys)
        if sum(len(entry.value) for entry in entries if entry) > BATCH_BYTES_MAX:
            raise Refusal(413, "too_large", f"the values are more than {BATCH_BYTES_MAX} bytes; ask for fewer keys")
        return json_answer({"entries": [None if entry is None else entry_body(entry, ask) for entry in entries]})

    async def table(self, request: Request) -> Response:
        return json_answer(status_body(self._served(request, loaded=False)))

    async def all_tables(self, request: Request) -> Response:
        return json_answer({"tables": [status_body(served) for served in self._tables.values()]})

    async def health(self, request: Request) -> Response:
        states = {topic: served.table.progress for topic, served in self._tables.items()}
        well = all(progress.ready for progress in states.values())
        body = {"healthy": well, "tables": {topic: progress.state.value for topic, progress in states.items()}}
        return json_answer(body, status=200 if well else 503)

    async def metrics(self, request: Request) -> Response:
        return Response(self._meters.text(), media_type=self._meters.content_type)

    def _served(self, request: Request, *, loaded: bool = True) -> Served:
        topic = request.path_params["topic"]
        served = self._tables.get(topic)
        if served is None:
            known = ", ".join(self._tables)
            raise Refusal(404, "no_such_table", f"there is no table {topic!r} here; there are {known}")
        if loaded and not served.table.progress.ready:
            raise _not_loaded(served.table)
        return served


def _key_text(request: Request) -> str:
    """The key as it stands in the path: the server has decoded the path already, and replaced what is no UTF-8."""
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    try:
        return unquote_to_bytes(raw.split(b"?", 1)[0].split(b"/", 4)[4]).decode()
    except UnicodeDecodeError:
        raise BadKey("the key in the path is no UTF-8; write it as base64, with key_format=base64") from None


def _page(table: Table, spans: list[tuple[bytes, bytes | None]], ask: Asked) -> Page:
    """One page over spans that follow one another; `after` says in which of them to go on."""
    entries: list[Entry] = []
    after = ask.after
    for number, (start, end) in enumerate(spans):
        if after is not None and not (start <= after and (end is None or after < end)):
            continue
        found = table.page(start, end, ask.limit - len(entries), after=after)
        after = None
        entries += found.entries
        size = sum(len(entry.key) + len(entry.value) for entry in entries)
        full = len(entries) >= ask.limit or size >= PAGE_BYTES_MAX
        if found.more or full:
            more = found.more or any(table.page(s, e, 1).entries for s, e in spans[number + 1 :])
            return Page(entries, more)
    return Page(entries, False)


async def _reach(table: Table, ask: Asked) -> None:
    """Waits for the offsets that the caller named, on no thread."""
    if not ask.min_offsets:
        return
    table.check_partitions(ask.min_offsets)
    loop = asyncio.get_running_loop()
    woken = asyncio.Event()

    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # the server has stopped, and its loop is closed
            loop.call_soon_threadsafe(woken.set)

    waiter = table.waiting.add(ask.min_offsets, wake)
    if waiter is None:
        return
    try:
        await asyncio.wait_for(woken.wait(), ask.wait_ms / 1000)
    except TimeoutError:
        raise table.not_reached(ask.min_offsets) from None
    finally:
        table.waiting.remove(waiter)
    if not table.waiting.is_there(ask.min_offsets):
        raise table.not_reached(ask.min_offsets)


def _not_loaded(table: Table) -> Refusal:
    as_of = table.as_of()
    return Refusal(503, "loading", str(table.still_loading()), lag=as_of.lag, state=as_of.state)


def _refusal(error: Exception) -> Refusal:
    if isinstance(error, BadKey):
        return Refusal(400, "bad_key", str(error))
    if isinstance(error, ValueError | msgspec.MsgspecError):
        return Refusal(400, "bad_request", str(error))
    if isinstance(error, NotReached):
        return Refusal(503, "loading" if isinstance(error, StillLoading) else "not_reached", str(error))
    if isinstance(error, StoreDamaged):
        return Refusal(500, "store_damaged", str(error))
    if isinstance(error, TableError):
        return Refusal(503, "unavailable", str(error))
    log.exception("a request failed", exc_info=error)
    return Refusal(500, "internal", f"{type(error).__name__}; the server's log tells more")


async def _unrouted(request: Request, error: HTTPException) -> Response:
    if error.status_code == 405:
        message = f"{request.method} is not for {request.url.path}; tables are read with GET, several keys with POST"
        return Refusal(405, "method_not_allowed", message).answer(error.headers)
    return Refusal(404, "no_such_path", f"there is nothing at {request.url.path}; /tables lists the tables").answer()


async def _broken(request: Request, error: Exception) -> Response:
    return _refusal(error).answer()
