"""One connection to one broker: requests out, answers in, in order.

A connection first asks which versions the broker speaks (ApiVersions at our newest version; a broker that does not know
that one answers error 35 in version 0, and is asked again in a version it listed), then it authenticates where it was
given a login. After that every request is sent in the newest version that both know. The caller writes the bytes that
come out and hands in the bytes that arrive.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import lru_cache

from penstock.base.errors import DecodeError, ErrorCode, KafkaError
from penstock.base.limits import REQUEST_BYTES_MAX
from penstock.base.ports import Buffer
from penstock.protocol import registry
from penstock.protocol.frames import decode_response_header, headed_pieces, headed_request, request_head
from penstock.protocol.generated.api_versions_request import ApiVersionsRequest
from penstock.protocol.generated.api_versions_response import ApiVersionsResponse
from penstock.protocol.message import Message
from penstock.wire.authentication import Authentication, Login
from penstock.wire.conversation import REQUEST_TIMEOUT_MS, Decode, Request, Ticket
from penstock.wire.errors import UnsupportedVersion, Violation, check
from penstock.wire.inbox import Allocate, Inbox, zeroed

SOFTWARE_NAME = "penstock"
API_VERSIONS = ApiVersionsRequest.API_KEY
CORRELATION_IDS = 2**31


@dataclass(frozen=True, slots=True)
class VersionRange:
    lowest: int
    highest: int


@dataclass(slots=True)
class InFlight:
    correlation_id: int
    api_key: int
    version: int
    ticket: Ticket
    deadline_ms: int
    decode: Decode | None = None


class Connection:
    def __init__(
        self,
        client_id: str,
        *,
        response_bytes_max: int = REQUEST_BYTES_MAX,
        software_version: str = "0",
        login: Login | None = None,
        place: str = "the broker",
        allocate: Allocate = zeroed,
    ) -> None:
        self._client_id = client_id
        self._software_version = software_version
        self._login = login
        self._place = place
        self._inbox = Inbox(response_bytes_max, allocate)
        self._correlation_id = 0
        self._in_flight: deque[InFlight] = deque()
        """Invariant: in the order of sending, which is the order of the answers."""
        self._handshake: Ticket | None = None
        """of the connection's own request, while one is in flight. Invariant: not `ready` then."""
        self._authentication: Authentication | None = None
        self._began_ms = 0
        """when the connection, or the last renewal of its session, began."""
        self._renew_ms: int | None = None
        """when to authenticate again; None where the broker does not ask for that."""
        self.versions: dict[int, VersionRange] = {}
        """what the broker speaks, by API key; empty until `ready`."""
        self._picked: dict[tuple[int, int | None], int] = {}
        """versions that were picked from them, by API key and what the caller accepts."""
        self._heads: dict[tuple[int, int], bytes] = {}
        """of requests, by API key and version."""
        self.features: dict[str, int] = {}
        """finalized features of the cluster, such as transaction.version."""
        self.ready = False
        self.outbox: list[Buffer] = []
        """bytes that `receive`, `filled` or `admits` want written: requests of the connection's own."""

    def start(self, now_ms: int, timeout_ms: int = REQUEST_TIMEOUT_MS) -> Buffer:
        """The first bytes to write. The connection is ready once the answers have been received."""
        self._began_ms = now_ms
        return self._ask_versions(ApiVersionsRequest.MAX_VERSION, now_ms + timeout_ms)

    def admits(self, now_ms: int) -> bool:
        """Whether `send` may be called now. Where the session is about to end this begins the next one: what is in
        flight is answered before it, what comes has to wait until the connection is ready again."""
        if self._renew_ms is not None and self.ready and now_ms >= self._renew_ms:
            self.ready = False
            self._began_ms = now_ms
            self._authenticate(now_ms + REQUEST_TIMEOUT_MS)
        return self.ready

    def send(
        self,
        message: Request,
        ticket: Ticket,
        *,
        now_ms: int,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
        max_version: int | None = None,
        answered: bool = True,
        decode: Decode | None = None,
    ) -> Buffer:
        """The bytes of this request; `ticket` is done when its answer is in. UnsupportedVersion: nothing was sent."""
        assert self.ready, "no request before the versions are known"
        version = ticket.version = self.pick_version(message, max_version)
        return self._encode(message, version, ticket, now_ms + timeout_ms, answered, decode)

    def send_pieces(
        self,
        message: Request,
        ticket: Ticket,
        *,
        now_ms: int,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
        max_version: int | None = None,
        answered: bool = True,
    ) -> list[Buffer]:
        """The same for a caller that can write several pieces: batches are among them, and not copied."""
        assert self.ready, "no request before the versions are known"
        version = ticket.version = self.pick_version(message, max_version)
        frame = headed_pieces(self._head(message.API_KEY, version), self._correlation_id, message, version)
        self._departed(message.API_KEY, version, ticket, now_ms + timeout_ms, answered)
        return frame

    def pick_version(self, message: Request, max_version: int | None = None) -> int:
        """The newest version of this request that we, the broker and the caller accept."""
        picked = self._picked.get((message.API_KEY, max_version))
        if picked is None:
            picked = self._picked[message.API_KEY, max_version] = self._pick_version(message, max_version)
        return picked

    def _pick_version(self, message: Request, max_version: int | None) -> int:
        api = registry.APIS[message.API_KEY]
        theirs = self.versions.get(message.API_KEY)
        if theirs is None:
            raise UnsupportedVersion(f"the broker does not offer {api.name}")
        ours = api.latest_stable if max_version is None else min(api.latest_stable, max_version)
        version = min(ours, theirs.highest)
        if version < max(api.min_version, theirs.lowest):
            raise UnsupportedVersion(
                f"no common version of {api.name}: we accept {api.min_version} to {ours}, "
                f"the broker {theirs.lowest} to {theirs.highest}"
            )
        return version

    def buffer(self) -> memoryview:
        """Where the socket may write next."""
        return self._inbox.buffer()

    @property
    def missing_bytes(self) -> int:
        """of the answer that is being received."""
        return self._inbox.missing_bytes

    def filled(self, count: int) -> list[Ticket]:
        """That many bytes arrived in `buffer()`; the tickets that are done now. Violation: close the connection."""
        return [ticket for frame in self._inbox.filled(count) if (ticket := self._answer(frame))]

    def receive(self, data: Buffer) -> list[Ticket]:
        """The same for bytes in memory."""
        return [ticket for frame in self._inbox.feed(data) if (ticket := self._answer(frame))]

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    def deadline_ms(self) -> int | None:
        """When the next request in flight is overdue. Answers are ordered, so then the connection must be closed."""
        return min((request.deadline_ms for request in self._in_flight), default=None)

    def lost(self, error: KafkaError) -> None:
        """The connection is gone: everything in flight fails with `error`, and nothing can be sent any more."""
        self.ready = False
        while self._in_flight:
            self._in_flight.popleft().ticket.fail(error)

    def _encode(
        self,
        message: Request,
        version: int,
        ticket: Ticket,
        deadline_ms: int,
        answered: bool,
        decode: Decode | None = None,
    ) -> Buffer:
        frame = headed_request(self._head(message.API_KEY, version), self._correlation_id, message, version)
        self._departed(message.API_KEY, version, ticket, deadline_ms, answered, decode)
        return frame

    def _head(self, key: int, version: int) -> bytes:
        head = self._heads.get((key, version))
        if head is None:
            head = self._heads[key, version] = request_head(key, version, self._client_id)
        return head

    def _departed(
        self, key: int, version: int, ticket: Ticket, deadline_ms: int, answered: bool, decode: Decode | None = None
    ) -> None:
        if answered:
            self._in_flight.append(InFlight(self._correlation_id, key, version, ticket, deadline_ms, decode))
        self._correlation_id = (self._correlation_id + 1) % CORRELATION_IDS

    def _answer(self, frame: Buffer) -> Ticket | None:
        if not self._in_flight:
            raise Violation("the broker answered without being asked")
        request = self._in_flight[0]
        try:
            correlation_id, at = decode_response_header(frame, request.api_key, request.version)
            if correlation_id != request.correlation_id:
                raise Violation(f"answer {correlation_id} came while answer {request.correlation_id} was expected")
            body = memoryview(frame)[at:]
            if request.ticket is self._handshake:
                return self._open(body, self._in_flight.popleft())
            decode = request.decode or registry.response_class(request.api_key).decode
            answer = decode(body, request.version)
        except DecodeError as error:
            raise Violation(f"undecodable answer to API {request.api_key} v{request.version}: {error}") from error
        self._in_flight.popleft()
        request.ticket.succeed(answer)
        return request.ticket

    def _open(self, body: memoryview, request: InFlight) -> Ticket | None:
        """The connection's own request was answered; its ticket, where that was the last it had to ask."""
        if self._authentication is not None:
            answer = registry.response_class(request.api_key).decode(body, request.version)
            message = self._authentication.next(answer)
            if message is not None:
                self._ask(message, request.deadline_ms)
                return None
            self._authenticated(self._authentication.lifetime_ms)
        elif not self._learn_versions(body, request):
            return None
        elif self._login is not None:
            self._authenticate(request.deadline_ms)
            return None
        self._handshake = None
        self.ready = True
        request.ticket.succeed()
        return request.ticket

    def _ask_versions(self, version: int, deadline_ms: int) -> Buffer:
        self._handshake = Ticket()
        message = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=self._software_version)
        return self._encode(message, version, self._handshake, deadline_ms, answered=True)

    def _learn_versions(self, body: memoryview, request: InFlight) -> bool:
        """False where we have to ask again, in an older version."""
        refused = int.from_bytes(body[:2], "big", signed=True) == ErrorCode.UNSUPPORTED_VERSION
        if refused and request.version > 0:
            listed = _listed_version(ApiVersionsResponse.decode(body, 0))
            self.outbox.append(self._ask_versions(listed, request.deadline_ms))
            return False
        code, self.versions, self.features = _read_versions(bytes(body), 0 if refused else request.version)
        check(code, None, "ApiVersions")
        self._picked.clear()
        return True

    def _authenticate(self, deadline_ms: int) -> None:
        assert self._login is not None
        self._authentication = Authentication(self._login, self._place)
        self._ask(self._authentication.first(), deadline_ms)

    def _authenticated(self, lifetime_ms: int) -> None:
        """Counted from the beginning: the broker counts from a later moment."""
        assert self._login is not None
        after_ms = self._login.renew_after_ms(lifetime_ms) if lifetime_ms > 0 else None
        self._renew_ms = None if after_ms is None else self._began_ms + after_ms
        self._authentication = None

    def _ask(self, message: Message, deadline_ms: int) -> None:
        self._handshake = Ticket()
        version = self.pick_version(message)
        self.outbox.append(self._encode(message, version, self._handshake, deadline_ms, answered=True))


def _listed_version(answer: ApiVersionsResponse) -> int:
    """The newest ApiVersions version that a refusal lists and we know; 0 where it lists none, as old brokers do."""
    for api in answer.api_keys:
        if api.api_key == API_VERSIONS:
            return min(api.max_version, ApiVersionsRequest.MAX_VERSION - 1)
    return 0


@lru_cache(maxsize=16)
def _read_versions(body: bytes, version: int) -> tuple[int, dict[int, VersionRange], dict[str, int]]:
    """An answer's error, versions by API key and levels of features. All brokers of a cluster answer alike, on every
    connection: it is read once."""
    answer = ApiVersionsResponse.decode(body, version)
    versions = {api.api_key: VersionRange(api.min_version, api.max_version) for api in answer.api_keys}
    return answer.error_code, versions, {one.name: one.max_version_level for one in answer.finalized_features}
