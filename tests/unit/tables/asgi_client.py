"""Asks an ASGI application without a server or a socket."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple
from urllib.parse import unquote


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """Of the error."""
        return str(self.json["error"]["code"])


class Asgi:
    """`ask(path)`, each on a loop of its own."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def __call__(
        self, target: str, *, method: str = "GET", body: bytes = b"", headers: dict[str, str] | None = None
    ) -> Answer:
        given = {name.lower(): value for name, value in (headers or {}).items()}
        return asyncio.run(self._ask(target, method, body, {"host": "localhost", **given}))

    async def _ask(self, target: str, method: str, body: bytes, headers: dict[str, str]) -> Answer:
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "http_version": "1.1",
            "scheme": "http",
            "server": ("localhost", 80),
        }
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], found, b"".join(part.get("body", b"") for part in sent[1:]))
