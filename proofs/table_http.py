"""A connection of HTTP/1.1 that is kept open, with as little between a request and its answer as can be."""

from __future__ import annotations

import asyncio
from urllib.parse import quote, urlsplit

import msgspec

_HEAD = "host: localhost\r\naccept: application/json\r\n"


def get_request(topic: str, key: str) -> bytes:
    return f"GET /tables/{topic}/keys/{quote(key, safe='')} HTTP/1.1\r\n{_HEAD}\r\n".encode()


def several_request(topic: str, keys: list[str]) -> bytes:
    body = msgspec.json.encode({"keys": keys})
    return f"POST /tables/{topic}/get HTTP/1.1\r\n{_HEAD}content-length: {len(body)}\r\n\r\n".encode() + body


class HttpClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, url: str) -> HttpClient:
        parts = urlsplit(url)
        return cls(*await asyncio.open_connection(parts.hostname, parts.port))

    async def ask(self, request: bytes) -> bytes:
        """The body of the answer; anything but 200 is an error."""
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        size = next(int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:"))
        body = await self._reader.readexactly(size)
        assert lines[0].startswith(b"http/1.1 200"), (lines[0], body)
        return body

    def close(self) -> None:
        self._writer.close()
