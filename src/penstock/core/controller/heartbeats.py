"""Who is alive: the sessions of brokers, which the active controller keeps in memory, and what follows from them.

A broker is fenced, unfenced or in controlled shutdown, as the image says; its heartbeats ask for the next state:

    fenced               -> unfenced, once its image has its own registration
    unfenced             -> fenced, when it cannot write and asks for that, unless it alone holds what it leads
    unfenced             -> controlled shutdown, when it wants to go and leads something
    unfenced             -> gone (fenced), when it wants to go and leads nothing
    controlled shutdown  -> gone (fenced), once it leads nothing and every active broker has seen that

A session ends when no heartbeat has come for the session timeout, or a short while after its connection was lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.controller.brokers import (
    check_broker_epoch,
    decide_controlled_shutdown,
    decide_fence_broker,
    decide_leaders_away,
    decide_offline_directories,
    decide_unfence_broker,
    holds_alone,
    leads_any,
)
from penstock.core.controller.cordons import decide_cordon, is_news
from penstock.core.controller.result import Result
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import Broker, Image
from penstock.protocol.generated.broker_heartbeat_request import BrokerHeartbeatRequest
from penstock.protocol.generated.broker_heartbeat_response import BrokerHeartbeatResponse
from penstock.protocol.message import Message

_NO_OFFSET = -1
_RECONNECTS_AFTER_ELECTION = 3
"""Brokers learn of a new controller one by one: they get so many times the time that a lost connection gets."""


class State(Enum):
    FENCED = 0
    UNFENCED = 1
    CONTROLLED_SHUTDOWN = 2
    SHUTDOWN_NOW = 3


@dataclass(slots=True)
class Session:
    epoch: int
    """the broker's, so that what is heard of an earlier incarnation does not count for this one"""
    end_ms: int
    """when it is over, if nothing is heard before"""
    is_heard: bool = False
    """whether this controller has had a heartbeat in it"""
    metadata_offset: int = _NO_OFFSET
    """what the broker's image reaches"""
    shutdown_offset: int = _NO_OFFSET
    """the end of the metadata log when its controlled shutdown began"""


class Heartbeats:
    """Invariant: every unfenced broker of the image has a session, from the moment this controller became active."""

    def __init__(self, image: Image, now_ms: int, *, session_timeout_ms: int, reconnect_ms: int) -> None:
        """`reconnect_ms`: how long a broker may be without its connection; negative: as long as its session lasts."""
        self.session_timeout_ms = session_timeout_ms
        self.reconnect_ms = reconnect_ms
        patience_ms = session_timeout_ms
        if reconnect_ms >= 0:
            patience_ms = min(session_timeout_ms, _RECONNECTS_AFTER_ELECTION * reconnect_ms)
        self.sessions = {
            one.id: Session(one.epoch, now_ms + patience_ms, shutdown_offset=image.offset)
            for one in image.brokers.values()
            if not one.fenced
        }

    def is_alive(self, image: Image, broker_id: int, now_ms: int) -> bool:
        """Whether an unfenced broker has told this controller so. That another controller knew it is not enough: a node
        that was killed with the whole cluster could not come back before its own session is over."""
        broker, session = image.brokers.get(broker_id), self.sessions.get(broker_id)
        if broker is None or broker.fenced or session is None:
            return False
        return session.epoch == broker.epoch and session.is_heard and now_ms < session.end_ms

    def touch(self, image: Image, request: BrokerHeartbeatRequest, now_ms: int) -> None:
        """A heartbeat came. KafkaError where it is not from the broker that is registered."""
        check_broker_epoch(image, request.broker_id, request.broker_epoch)
        session = self.sessions.get(request.broker_id)
        if session is None or session.epoch != request.broker_epoch:
            session = self.sessions[request.broker_id] = Session(request.broker_epoch, now_ms)
        session.end_ms, session.is_heard = now_ms + self.session_timeout_ms, True
        session.metadata_offset = max(session.metadata_offset, request.current_metadata_offset)

    def lost_connection(self, broker_id: int, epoch: int, now_ms: int) -> None:
        session = self.sessions.get(broker_id)
        if session is not None and session.epoch == epoch and self.reconnect_ms >= 0:
            session.end_ms = min(session.end_ms, now_ms + self.reconnect_ms)

    def forgive(self, held_ms: int) -> None:
        """This node did nothing for so long: what brokers have sent in the meantime has not been looked at yet."""
        for session in self.sessions.values():
            session.end_ms += held_ms

    def wants_change(self, image: Image, request: BrokerHeartbeatRequest) -> bool:
        """Whether a heartbeat needs a decision; most need none and are answered at once."""
        broker = image.brokers[request.broker_id]
        if request.want_shut_down or any(one in broker.log_dirs for one in request.offline_log_dirs):
            return True
        if is_news(image, broker, request.cordoned_log_dirs):
            return True
        return broker.fenced != request.want_fence

    def answer(self, image: Image, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        broker = image.brokers[request.broker_id]
        return _answer(broker, request, _state(broker))

    def decide(
        self, image: Image, node: Node, request: BrokerHeartbeatRequest, end_offset: int
    ) -> Result[BrokerHeartbeatResponse]:
        """`end_offset`: of the metadata log, now."""
        try:
            check_broker_epoch(image, request.broker_id, request.broker_epoch)
        except KafkaError as error:
            return Result(BrokerHeartbeatResponse(error_code=error.code))
        broker = image.brokers[request.broker_id]
        current = _state(broker)
        wanted = self._next(image, node, broker, request, current)
        records: list[Message] = []
        if wanted is not current:
            records = _transition(image, node, broker.id, wanted, is_fenced=broker.fenced)
            if wanted is State.CONTROLLED_SHUTDOWN:
                self.sessions[broker.id].shutdown_offset = end_offset + len(records) - 1
        elif wanted is State.UNFENCED and request.want_fence:
            records = decide_leaders_away(image, node, broker.id)
        if wanted in (State.FENCED, State.UNFENCED):
            records += decide_offline_directories(image, node, broker.id, request.offline_log_dirs)
            records += decide_cordon(image, broker, request.cordoned_log_dirs)
        return Result(_answer(broker, request, wanted), records)

    def stale(self, image: Image, now_ms: int) -> int | None:
        """A broker whose session is over, if there is one; the longest silent first."""
        over = [(end_ms, broker_id) for end_ms, broker_id in self._ends(image) if end_ms <= now_ms]
        return min(over)[1] if over else None

    def next_check_ms(self, image: Image) -> int | None:
        """When the next session ends, if no heartbeat comes before."""
        return min((end_ms for end_ms, _ in self._ends(image)), default=None)

    def _ends(self, image: Image) -> list[tuple[int, int]]:
        return [
            (session.end_ms, broker_id)
            for broker_id, session in self.sessions.items()
            if broker_id in image.brokers and not image.brokers[broker_id].fenced
        ]

    def _next(self, image: Image, node: Node, broker: Broker, request: BrokerHeartbeatRequest, current: State) -> State:
        if current is State.FENCED:
            if request.want_shut_down:
                return State.SHUTDOWN_NOW
            ready = not request.want_fence and request.current_metadata_offset >= broker.epoch
            return State.UNFENCED if ready else State.FENCED
        if current is State.UNFENCED:
            if request.want_fence and request.want_shut_down:
                return State.SHUTDOWN_NOW
            if request.want_fence:
                return State.UNFENCED if holds_alone(image, node, broker.id) else State.FENCED
            if not request.want_shut_down:
                return State.UNFENCED
            return State.CONTROLLED_SHUTDOWN if leads_any(image, broker.id) else State.SHUTDOWN_NOW
        if leads_any(image, broker.id) or not self._all_have_seen(image, broker.id):
            return State.CONTROLLED_SHUTDOWN
        return State.SHUTDOWN_NOW

    def _all_have_seen(self, image: Image, leaving: int) -> bool:
        """Whether every active broker knows that others lead now what `leaving` has led."""
        wanted = self.sessions[leaving].shutdown_offset
        active = [one.id for one in image.brokers.values() if one.active]
        return all(one in self.sessions and self.sessions[one].metadata_offset >= wanted for one in active)


def _state(broker: Broker) -> State:
    if broker.fenced:
        return State.FENCED
    return State.CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else State.UNFENCED


def _transition(image: Image, node: Node, broker_id: int, wanted: State, *, is_fenced: bool) -> list[Message]:
    if wanted is State.UNFENCED:
        return decide_unfence_broker(image, node, broker_id)
    if wanted is State.CONTROLLED_SHUTDOWN:
        return decide_controlled_shutdown(image, node, broker_id)
    return [] if is_fenced else decide_fence_broker(image, node, broker_id)


def _answer(broker: Broker, request: BrokerHeartbeatRequest, state: State) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(
        error_code=ErrorCode.NONE,
        is_caught_up=request.current_metadata_offset >= broker.epoch,
        is_fenced=state in (State.FENCED, State.SHUTDOWN_NOW),
        should_shut_down=state is State.SHUTDOWN_NOW,
    )
