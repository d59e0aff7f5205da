"""A talk with the cluster as a generator: it yields effects, the shell carries them out and sends the outcome back.

So the same talk serves both shells, the simulator and a test that scripts every answer. An effect that fails raises its
KafkaError at the `yield`. A talk may be abandoned at any `yield` (the generator is closed): it keeps no resource.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from penstock.base.errors import KafkaError
from penstock.protocol.frames import Writable
from penstock.protocol.message import Message

T = TypeVar("T")


class Request(Writable, Protocol):
    """What can be sent."""

    @property
    def API_KEY(self) -> int: ...


Decode = Callable[[memoryview, int], Any]
"""An answer's body and version: the answer."""

ANY_NODE: int | None = None
REQUEST_TIMEOUT_MS = 30_000


class Ticket:
    """Something that will be over at some time: a request in flight, or a bell that the application rings."""

    __slots__ = ("_listeners", "answer", "done", "error", "version")

    def __init__(self) -> None:
        self.done = False
        self.answer: Any = None
        self.version = -1
        """the version the request was sent in, once that is known."""
        self.error: KafkaError | None = None
        self._listeners: list[Callable[[], None]] = []

    def succeed(self, answer: Any = None) -> None:
        self.answer = answer
        self._finish()

    def fail(self, error: KafkaError) -> None:
        self.error = error
        self._finish()

    def result(self) -> Any:
        assert self.done
        if self.error is not None:
            raise self.error
        return self.answer

    def listen(self, listener: Callable[[], None]) -> None:
        """Call it once this is done."""
        self._listeners.append(listener)

    def forget(self, listener: Callable[[], None]) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)

    def _finish(self) -> None:
        assert not self.done, "a ticket is done once"
        self.done = True
        for listener in self._listeners:
            listener()
        self._listeners.clear()


class Ask(NamedTuple):
    """Send a request to a node (None: to any) and wait for its answer."""

    node: int | None
    message: Request
    max_version: int | None = None
    timeout_ms: int = REQUEST_TIMEOUT_MS
    answered: bool = True
    """False for a Produce with acks=0, which no broker answers."""
    decode: Decode | None = None
    """reads the answer; None: the generated class does."""
    channel: str = ""
    """Requests of different channels go over different connections: a broker answers those of one connection in order,
    so a long poll would hold up whatever is sent behind it."""


@dataclass(frozen=True, slots=True)
class Begin:
    """Send a request without waiting; the reply is its Ticket."""

    ask: Ask


@dataclass(frozen=True, slots=True)
class Await:
    """Wait until one of the tickets is done or the time has passed, whichever is first. No tickets: wait the time."""

    tickets: list[Ticket]
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait this long before trying again. The shell spreads it by chance, so that clients do not return in step."""

    after_ms: int


@dataclass(frozen=True, slots=True)
class Now:
    """The monotonic clock, in ms."""


@dataclass(frozen=True, slots=True)
class WallClock:
    """The time of day in ms since 1970, for timestamps."""


@dataclass(frozen=True, slots=True)
class Chance:
    """A number 0 <= n < bound."""

    bound: int


@dataclass(frozen=True, slots=True)
class Tell:
    """Hand an event to the application's listener, and wait until it has dealt with it."""

    event: Any


Effect = Ask | Begin | Await | Pause | Now | WallClock | Chance | Tell
Conversation = Generator[Effect, Any, T]


def ask(
    node: int | None,
    message: Message,
    answer: type[T],
    *,
    max_version: int | None = None,
    timeout_ms: int = REQUEST_TIMEOUT_MS,
    channel: str = "",
) -> Conversation[T]:
    """One request, one answer of the type that belongs to it."""
    reply = yield Ask(node, message, max_version, timeout_ms, channel=channel)
    assert isinstance(reply, answer), f"asked {type(message).__name__}, answered {type(reply).__name__}"
    return reply


_NOW = Now()


def now() -> Conversation[int]:
    return (yield _NOW)  # type: ignore[no-any-return]  # the shell replies to Now with an int


def begin(ask: Ask) -> Conversation[Ticket]:
    return (yield Begin(ask))  # type: ignore[no-any-return]  # the shell replies to Begin with a Ticket


def ask_all(asks: Iterable[Ask]) -> Conversation[list[Ticket]]:
    """Send all, then wait for all; the tickets come back in the order of the requests."""
    tickets: list[Ticket] = []
    for one in asks:
        tickets.append((yield from begin(one)))
    while waiting := [ticket for ticket in tickets if not ticket.done]:
        yield Await(waiting, REQUEST_TIMEOUT_MS)
    return tickets
