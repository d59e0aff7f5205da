"""One partition's transactional ids: every door of the transaction coordinator, and the replay of its records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.base.errors import ErrorCode
from penstock.core.coordinator.result import Completion, CoordinatorRecord, Now, Result
from penstock.core.coordinator.timers import Timers
from penstock.core.transactions import adding, ending, init, overview
from penstock.core.transactions.config import TransactionConfig
from penstock.core.transactions.markers import DecideAgain, Decided, ExpiryDue, MarkerOrder, TimedOut
from penstock.core.transactions.records import tombstone, transaction_record
from penstock.core.transactions.state import State, again_key, timeout_key
from penstock.core.transactions.states import LEGAL, Status
from penstock.core.transactions.transaction import EPOCH_MAX

if TYPE_CHECKING:
    from penstock.protocol.generated.end_txn_request import EndTxnRequest
    from penstock.protocol.generated.init_producer_id_request import InitProducerIdRequest
    from penstock.protocol.generated.list_transactions_request import ListTransactionsRequest

_EXPIRY_KEY = "expiry"


class TransactionShard:
    """A `core.coordinator.shard.Shard`. Refusals are KafkaErrors."""

    def __init__(self, config: TransactionConfig, coordinator_epoch: int, level: int) -> None:
        self.state = State(config, coordinator_epoch, level)

    @property
    def timers(self) -> Timers:
        return self.state.timers

    def take_orders(self) -> list[MarkerOrder]:
        """The markers to be sent that were not handed out yet."""
        orders, self.state.orders = self.state.orders, []
        return orders

    def wants_producer_id(self, transactional_id: str) -> bool:
        return init.wants_producer_id(self.state, transactional_id)

    def init(self, request: InitProducerIdRequest, fresh: int | None, ticket: int, now: Now) -> Result:
        return init.init(self.state, request, fresh, ticket, now)

    def add(self, request: adding.Enlist, version: int, ticket: int, now: Now) -> Result:
        return adding.add(self.state, request, version, ticket, now)

    def verify(self, request: adding.Enlist, context: object, ticket: int, now: Now) -> Result:
        return adding.verify(self.state, request, context, ticket, now)

    def end(self, request: EndTxnRequest, fresh: int | None, ticket: int, now: Now) -> Result:
        return ending.end(self.state, request, fresh, ticket, now)

    def end_with_bump(self, request: EndTxnRequest, fresh: int | None, ticket: int, now: Now) -> Result:
        return ending.end_with_bump(self.state, request, fresh, ticket, now)

    def complete(self, order: MarkerOrder, context: object, ticket: int, now: Now) -> Result:
        return ending.complete(self.state, order, context, ticket, now)

    def describe(self, transactional_id: str, context: object, ticket: int, now: Now) -> Result:
        return overview.describe(self.state, transactional_id, context, ticket, now)

    def list_transactions(self, request: ListTransactionsRequest, context: object, ticket: int, now: Now) -> Result:
        return overview.list_transactions(self.state, request, context, ticket, now)

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        self.state.replay(record)

    def replay_end_transaction(self, producer_id: int, committed: bool) -> None:
        """This topic is not written to in transactions."""

    def loaded(self, now: Now) -> Result:
        """Open transactions get the rest of their time. What is decided is decided once more: the record may be in this
        log's tail, not committed yet, and the markers must wait for that."""
        state = self.state
        for known in state.transactions.values():
            if known.status is Status.ONGOING:
                left_ms = known.started_ms + known.timeout_ms - now.wall_ms
                key = timeout_key(known.transactional_id)
                state.timers.schedule(key, now.ms + max(left_ms, 0), TimedOut(known.transactional_id))
            elif known.status.is_prepared:
                state.timers.schedule(again_key(known.transactional_id), now.ms, DecideAgain(known.transactional_id))
        state.timers.schedule(_EXPIRY_KEY, now.ms + state.config.expiration_check_interval_ms, ExpiryDue())
        return Result()

    def unloaded(self) -> list[Completion]:
        return []

    def fire(self, event: object, now: Now) -> Result:
        match event:
            case TimedOut():
                return ending.time_out(self.state, event, now)
            case DecideAgain():
                return ending.decide_again(self.state, event.transactional_id, now)
            case ExpiryDue():
                return self._expire(now)
            case _:
                raise AssertionError(f"no timer says {event!r}")

    def settled(self, then: object, error: ErrorCode | None, now: Now) -> Result:
        assert isinstance(then, Decided), f"nobody wrote {then!r}"
        return ending.decided(self.state, then, error, now)

    def _expire(self, now: Now) -> Result:
        """Forget ids that nobody has used for long."""
        state = self.state
        state.timers.schedule(_EXPIRY_KEY, now.ms + state.config.expiration_check_interval_ms, ExpiryDue())
        expired = [
            tombstone(known.transactional_id)
            for known in state.transactions.values()
            if Status.DEAD in LEGAL[known.status] and now.wall_ms - known.updated_ms >= state.config.expiration_ms
        ]
        return Result(records=expired, atomic=False)

    def check(self) -> None:
        """What holds between events."""
        for transactional_id, known in self.state.transactions.items():
            assert known.transactional_id == transactional_id
            assert known.status is not Status.EMPTY or not known.partitions
            assert 0 <= known.producer_epoch <= EPOCH_MAX
            assert known.status is not Status.ONGOING or known.producer_epoch < EPOCH_MAX, "a client has the last epoch"
            assert known.status not in (Status.DEAD, Status.PREPARE_EPOCH_FENCE), "never stored"
            record = transaction_record(known, 1)
            assert record.value is not None
        self.state.timers.check()
