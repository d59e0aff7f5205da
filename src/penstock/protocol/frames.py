"""Frames and their headers: a 4-byte length, a header whose version follows from the API's version, a body.

A request's header is 1, or 2 where the API's version is flexible: tagged fields follow the client id, which itself is
never compact. A response's header is 0 or 1 likewise, except that ApiVersions always answers with 0: its client does
not know yet which versions we speak.
"""

from __future__ import annotations

from struct import Struct, error
from typing import NamedTuple, Protocol

from penstock.base.errors import DecodeError
from penstock.base.ports import Buffer
from penstock.protocol.codec import Pieces, Reader, write_nullable_string
from penstock.protocol.registry import APIS

LENGTH_BYTES = 4
API_VERSIONS_KEY = 18
_FIXED = Struct(">hhih")
_CORRELATION_AT = 8
"""in a request's frame: behind its length, API key and version"""
_LENGTH = Struct(">i")
_LENGTH_AND_ID = Struct(">ii")
_FLEXIBLE_FROM: dict[int, int] = {key: api.flexible_from for key, api in APIS.items()}


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def decode_request_header(buf: Buffer, at: int = 0) -> tuple[RequestHeader, int]:
    """The header of the frame that starts at `at` (after its length), and where the body starts.

    An unknown API has a header too; its tagged fields, if any, are taken for its body, which nobody will read.
    """
    try:
        key, version, correlation_id, size = _FIXED.unpack_from(buf, at)
        body = at + 10
        client_id = None
        if size > 0:
            body += size
            if body > len(buf):
                raise DecodeError(f"request header: client id of {size} bytes, {len(buf) - at - 10} are left")
            client_id = str(buf[at + 10 : body], "utf-8", "surrogateescape")
        elif size == 0:
            client_id = ""
        elif size != -1:
            raise DecodeError(f"request header: client id of {size} bytes")
        if version >= _FLEXIBLE_FROM.get(key, 32_767):
            if buf[body] == 0:
                body += 1
            else:
                body = _skip_tags(buf, body)
    except (error, IndexError):
        raise DecodeError(f"request header: {len(buf) - at} bytes are too few") from None
    return RequestHeader(key, version, correlation_id, client_id), body


def _skip_tags(buf: Buffer, at: int) -> int:
    reader = Reader(buf, at)
    reader.skip_tags()
    return reader.at


def response_header_version(api_key: int, version: int) -> int:
    return 1 if version >= _FLEXIBLE_FROM[api_key] and api_key != API_VERSIONS_KEY else 0


def encode_request_header(header: RequestHeader) -> bytearray:
    out = bytearray(_FIXED.pack(header.api_key, header.api_version, header.correlation_id, -1)[:8])
    write_nullable_string(out, header.client_id, False)
    if header.api_version >= _FLEXIBLE_FROM[header.api_key]:
        out.append(0)
    return out


def encode_response_header(api_key: int, version: int, correlation_id: int) -> bytes:
    head = _LENGTH.pack(correlation_id)
    return head + b"\0" if response_header_version(api_key, version) else head


def decode_response_header(buf: Buffer, api_key: int, version: int, at: int = 0) -> tuple[int, int]:
    """The correlation id, and where the body starts."""
    if len(buf) - at > _LENGTH.size and not buf[at + _LENGTH.size]:
        # What every broker sends: no tagged fields, or a body that happens to begin with a zero.
        (correlation_id,) = _LENGTH.unpack_from(buf, at)
        return correlation_id, at + _LENGTH.size + response_header_version(api_key, version)
    reader = Reader(buf, at)
    correlation_id = reader.int32()
    if response_header_version(api_key, version):
        reader.skip_tags()
    return correlation_id, reader.at


def response_frame(api_key: int, version: int, correlation_id: int, body: Buffer) -> bytes:
    """A whole frame: length, header, body."""
    if response_header_version(api_key, version):
        return _LENGTH_AND_ID.pack(5 + len(body), correlation_id) + b"\0" + body
    return _LENGTH_AND_ID.pack(4 + len(body), correlation_id) + body


class Writable(Protocol):
    """A generated message, or one that is written by hand."""

    def write(self, out: bytearray, version: int) -> None: ...


def request_head(api_key: int, version: int, client_id: str | None) -> bytes:
    """What all frames of one request by one client begin with: room for the length, and the header."""
    return bytes(_LENGTH.size) + encode_request_header(RequestHeader(api_key, version, 0, client_id))


def headed_request(head: bytes, correlation_id: int, message: Writable, version: int) -> bytearray:
    """The whole frame behind what `request_head` gave, written once: a message with megabytes of records is not copied
    into its frame."""
    out = bytearray(head)
    _LENGTH.pack_into(out, _CORRELATION_AT, correlation_id)
    message.write(out, version)
    _LENGTH.pack_into(out, 0, len(out) - _LENGTH.size)
    return out


def headed_pieces(head: bytes, correlation_id: int, message: Writable, version: int) -> list[Buffer]:
    """The same frame in pieces to be sent one after the other: long bytes of the message are among them as they are."""
    out = Pieces(head)
    _LENGTH.pack_into(out, _CORRELATION_AT, correlation_id)
    message.write(out, version)
    _LENGTH.pack_into(out, 0, len(out) + out.size_bytes_apart - _LENGTH.size)
    return out.pieces()
