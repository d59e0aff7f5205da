"""Proof that a transaction is known to its coordinator before its first batch enters the log (KIP-890).

A transactional batch of a producer without an open transaction here needs a guard: the shell asks for one, has the
coordinator confirm the transaction, and hands the guard to the append. The race that it prevents: the coordinator
confirms; it then aborts and its marker is written here; only then does the batch arrive. The marker takes the guard
away, so the batch is refused instead of opening a transaction that nobody will ever end.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError


class Guard:
    """One verification under way. It is known by its identity."""

    __slots__ = ("begun_ms", "epoch", "lowest_sequence")

    def __init__(self, begun_ms: int, epoch: int, lowest_sequence: int) -> None:
        self.begun_ms = begun_ms
        self.epoch = epoch
        self.lowest_sequence = lowest_sequence
        """Of the batches that wait for it: a later one must not be the first to enter (KAFKA-14920)."""


class Verifications:
    __slots__ = ("_guards", "required")

    def __init__(self) -> None:
        self.required = False
        """Whether transactional batches need a guard at all."""
        self._guards: dict[int, Guard] = {}

    def begin(self, producer_id: int, epoch: int, sequence: int, now_ms: int) -> Guard:
        guard = self._guards.get(producer_id)
        if guard is None:
            guard = self._guards[producer_id] = Guard(now_ms, epoch, sequence)
        elif epoch > guard.epoch:
            guard.epoch, guard.lowest_sequence = epoch, sequence
        elif epoch == guard.epoch:
            guard.lowest_sequence = min(guard.lowest_sequence, sequence)
        return guard

    def check(self, producer_id: int, sequence: int, guard: Guard | None, where: str) -> None:
        """Whether the first batch of a transaction may enter."""
        known = self._guards.get(producer_id)
        if known is not None and sequence > known.lowest_sequence >= 0:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"{where}: sequence {sequence} of producer {producer_id} came before {known.lowest_sequence}",
            )
        if self.required and (known is None or known is not guard):
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"{where}: producer {producer_id} has no transaction that its coordinator has confirmed",
            )

    def clear(self, producer_id: int) -> None:
        """The transaction is open here, or a marker ended it."""
        self._guards.pop(producer_id, None)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        for producer_id in [p for p, guard in self._guards.items() if now_ms - guard.begun_ms >= expiration_ms]:
            del self._guards[producer_id]
