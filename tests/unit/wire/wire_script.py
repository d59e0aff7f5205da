"""Drives a talk without a network: a test answers each request by hand, time passes only in waits."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from penstock.base.errors import KafkaError
from penstock.protocol.message import Message
from penstock.wire.conversation import Ask, Await, Begin, Chance, Now, Pause, Tell, Ticket, WallClock

Answerer = Callable[[Ask], Any]


class Script:
    """`answer(ask)` returns a message, raises a KafkaError, or returns None for a request that is never answered."""

    def __init__(self, answer: Answerer) -> None:
        self.answer = answer
        self.now_ms = 0
        self.asked: list[Message] = []
        self.asks: list[Ask] = []
        self.pauses: list[int] = []
        self.told: list[Any] = []
        self.listener: Callable[[Any], None] | None = None

    def run(self, talk: Generator[Any, Any, Any]) -> Any:
        reply: Any = None
        error: KafkaError | None = None
        while True:
            try:
                effect = talk.send(reply) if error is None else talk.throw(error)
            except StopIteration as stop:
                return stop.value
            reply = error = None
            try:
                reply = self._carry_out(effect)
            except KafkaError as refused:
                error = refused

    def _carry_out(self, effect: Any) -> Any:
        match effect:
            case Ask():
                return self._begin(effect).result()
            case Begin():
                return self._begin(effect.ask)
            case Await():
                if not any(ticket.done for ticket in effect.tickets):
                    self.now_ms += max(1, effect.timeout_ms)
            case Pause():
                self.pauses.append(effect.after_ms)
                self.now_ms += effect.after_ms
            case Now():
                return self.now_ms
            case WallClock():
                return 1_700_000_000_000 + self.now_ms
            case Chance():
                return 0
            case Tell():
                self.told.append(effect.event)
                if self.listener is not None:
                    self.listener(effect.event)
        return None

    def _begin(self, ask: Ask) -> Ticket:
        self.asked.append(ask.message)
        self.asks.append(ask)
        ticket = Ticket()
        try:
            answer = self.answer(ask)
        except KafkaError as error:
            ticket.fail(error)
        else:
            if answer is not None:
                ticket.version = 99
                ticket.succeed(answer)
        return ticket
