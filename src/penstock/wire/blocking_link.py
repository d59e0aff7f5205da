"""The sockets of the blocking shell: none of them ever waits, the selector does."""

from __future__ import annotations

import os
import selectors
import socket
import ssl
from collections import deque
from itertools import islice
from typing import Any

from penstock.base.errors import KafkaError
from penstock.wire import tls
from penstock.wire.cluster import Broker
from penstock.wire.connection import Connection
from penstock.wire.conversation import Ask, Ticket
from penstock.wire.errors import Disconnected
from penstock.wire.within import unpace

PIECES_AT_ONCE = 64 if hasattr(socket.socket, "sendmsg") else 1
"""that are handed to the system by one call; not every system takes more than one."""


class Link:
    """One socket with what is to be written to it and what waits for it to be ready."""

    def __init__(self, broker: Broker, connection: Connection, now_ms: int, timeout_ms: int) -> None:
        """`timeout_ms`: until it is ready for requests."""
        self.broker = broker
        self.connection = connection
        self.outgoing: deque[memoryview] = deque([memoryview(connection.start(now_ms, timeout_ms))])
        self.waiting: list[tuple[Ask, Ticket]] = []
        self.interest = selectors.EVENT_READ | selectors.EVENT_WRITE
        self.connected = False
        self._addresses = self._resolve(broker)
        """those that the host's name stands for and were not tried: `localhost` is two, and a broker may be at one."""
        self.socket = self._open()

    @staticmethod
    def _resolve(broker: Broker) -> deque[tuple[int, Any]]:
        try:
            found = socket.getaddrinfo(broker.host, broker.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:  # the latter: a host that no name can have
            raise Disconnected(f"{broker.host}:{broker.port}: {error}") from error
        return deque((family, address) for family, _, _, _, address in found)

    def _open(self) -> socket.socket:
        family, address = self._addresses.popleft()
        opened = socket.socket(family, socket.SOCK_STREAM)
        opened.setblocking(False)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened.connect_ex(address)  # what it comes to is told by the first write
        return opened

    def wanted(self) -> int:
        """What the selector is to wait for."""
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self.outgoing else 0)

    def try_next_address(self) -> bool:
        """After a connection could not be made; False where there is no other place to try."""
        if self.connected or not self._addresses:
            return False
        self.socket.close()
        self.socket = self._open()
        return True

    def reached(self) -> None:
        """The socket is connected."""
        self.connected = True
        unpace(self.socket)

    def send(self, ask: Ask, ticket: Ticket, now_ms: int) -> None:
        try:
            pieces = self.connection.send_pieces(
                ask.message,
                ticket,
                now_ms=now_ms,
                timeout_ms=ask.timeout_ms,
                max_version=ask.max_version,
                answered=ask.answered,
            )
        except KafkaError as error:
            ticket.fail(error)
            return
        self.outgoing.extend(map(memoryview, pieces))
        if not ask.answered:
            ticket.succeed()

    def write(self) -> None:
        while self.outgoing:
            pieces = list(islice(self.outgoing, PIECES_AT_ONCE))
            sent = self.socket.sendmsg(pieces) if len(pieces) > 1 else self.socket.send(pieces[0])
            if not self.connected:
                self.reached()
            for piece in pieces:
                if sent < len(piece):
                    self.outgoing[0] = piece[sent:]
                    return
                sent -= len(piece)
                self.outgoing.popleft()

    def read(self) -> None:
        count = self.socket.recv_into(self.connection.buffer())
        if not count:
            raise ConnectionResetError("the broker closed the connection")
        self.connection.filled(count)
        self.take_outbox()

    def take_outbox(self) -> None:
        """Write what the connection itself has to say."""
        self.outgoing.extend(memoryview(data) for data in self.connection.outbox)
        self.connection.outbox.clear()

    def failure(self, error: OSError) -> KafkaError:
        return Disconnected(f"{self.broker.host}:{self.broker.port}: {error}")

    def lost(self, error: KafkaError) -> None:
        self.socket.close()
        self.connection.lost(error)
        for _, ticket in self.waiting:
            ticket.fail(error)
        self.waiting.clear()


class TlsLink(Link):
    """The same over TLS. Once the socket is connected it is wrapped, and shakes hands before anything is sent."""

    def __init__(
        self, broker: Broker, connection: Connection, now_ms: int, timeout_ms: int, context: ssl.SSLContext
    ) -> None:
        self._context = context
        self._wrapped: ssl.SSLSocket | None = None
        self._wanted = selectors.EVENT_WRITE
        """what the handshake waits for; 0 once it is over."""
        super().__init__(broker, connection, now_ms, timeout_ms)

    def wanted(self) -> int:
        return self._wanted or super().wanted()

    def write(self) -> None:
        if self._wanted:
            self._shake_hands()
        if self._wanted:
            return
        try:
            while self.outgoing:
                sent = self.socket.send(self.outgoing[0])
                if sent < len(self.outgoing[0]):
                    self.outgoing[0] = self.outgoing[0][sent:]  # one record of TLS; the next may fit as well
                else:
                    self.outgoing.popleft()
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
            return

    def read(self) -> None:
        """All there is: the selector does not know of bytes that TLS has taken from the socket already."""
        if self._wanted:
            self._shake_hands()
            return
        try:
            while True:
                super().read()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return

    def failure(self, error: OSError) -> KafkaError:
        found = tls.failure(f"{self.broker.host}:{self.broker.port}", error)
        if isinstance(found, Disconnected) and self.connected and self._wanted:
            return Disconnected(f"{found}; the TLS handshake was not over: does this listener speak TLS?")
        return found

    def _shake_hands(self) -> None:
        if self._wrapped is None:
            self._wrapped = self.socket = self._wrap()
        try:
            self._wrapped.do_handshake()
        except ssl.SSLWantReadError:
            self._wanted = selectors.EVENT_READ
        except ssl.SSLWantWriteError:
            self._wanted = selectors.EVENT_WRITE
        else:
            self._wanted = 0

    def _wrap(self) -> ssl.SSLSocket:
        number = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            raise OSError(number, os.strerror(number))
        self.reached()
        return self._context.wrap_socket(
            self.socket, server_hostname=self.broker.host, do_handshake_on_connect=False, suppress_ragged_eofs=True
        )
