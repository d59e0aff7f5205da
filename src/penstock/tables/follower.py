"""The thread that writes: it reads the topic, and puts what it read and how far it came into the store.

Whatever goes wrong on the way, it goes on from what the store says; what was read and not stored is read again.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from enum import Enum

from penstock.base.errors import RETRIABLE, KafkaError
from penstock.tables.changes import Changes, Reached
from penstock.tables.errors import StoreOfAnother, TableError
from penstock.tables.feed import DELETE_RETENTION_MS, Bounds, Feed, Lost
from penstock.tables.limits import TRANSACTION_BYTES_MAX, TRANSACTION_RECORDS_MAX
from penstock.tables.store import About, Identity, Store
from penstock.tables.waiting import Waiting
from penstock.wire.security import PLAINTEXT, Security

POLL_MS = 200
GATHER_S = 2.0
"""a transaction is not kept waiting longer for more, however far the table is behind."""
RETRY_S = 0.2
TIMEOUT_MS_LATER = 2_000
"""ms for a question once the table runs: it is asked again anyway, and closing waits for it."""
ASK_AGAIN_S = 10.0
"""between two questions about the topic itself."""
SAY_SO_S = 3.0
"""between two log lines about a load."""
STILL_HERE_S = 300.0
"""between two notes in the store that the table holds everything, where nothing arrives."""

log = logging.getLogger("penstock.tables")


class State(Enum):
    LOADING = "loading"
    LIVE = "live"
    CUT_OFF = "cut off"
    """brokers do not answer; what is in the store is served."""
    MISSING = "topic missing"
    FAILED = "failed"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a table is. Replaced as a whole, so that any thread may look at it."""

    state: State = State.LOADING
    ready: bool = False
    """whether it held everything once since it was loaded, or loaded again."""
    reached: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    """where committed records end, as far as we know."""
    records: int = 0
    """read since the start of this process."""
    keyless: int = 0
    loads: int = 0
    """times that the store was emptied and loaded, the first time included."""
    cause: str | None = None
    """of the last load that was not the first, or of the failure."""
    trouble: str | None = None
    """what keeps it from following its topic just now."""


class Follower:
    def __init__(
        self, bootstrap: str, topic: str, store: Store, *, timeout_ms: int, security: Security = PLAINTEXT
    ) -> None:
        self.progress = Progress()
        self.waiting = Waiting()
        self.settings: dict[str, str] = {}
        self.failure: TableError | None = None
        self.changed = threading.Condition()
        """told when `progress` is another."""
        self._store = store
        self._feed = Feed(bootstrap, topic, timeout_ms=timeout_ms, security=security)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"table-{topic}", daemon=True)
        self._anchored = False
        self._lost: str | None = None
        self._goal: dict[int, int] = {}
        self._asked_s = self._noted_s = 0.0
        self._logged_s = time.monotonic()
        self._sweeping: bytes | None = None

    def start(self) -> None:
        """Finds the topic and how the store goes on with it; TableError or KafkaError where it cannot."""
        try:
            self.settings = self._feed.settings() if self._feed.identify() else {}
            self._anchor()
        except BaseException:
            self._feed.close()
            raise
        self._feed.timeout_ms = min(self._feed.timeout_ms, TIMEOUT_MS_LATER)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._tell(state=State.CLOSED if self.failure is None else State.FAILED)
        self.waiting.give_up()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._try_turn()
            if self.progress.state is State.LIVE:
                self._note_still_here()
        except Exception as error:
            cause = str(error) or type(error).__name__
            log.error("the table of %s is no longer followed: %s", self._feed.topic, cause)
            self.failure = (
                error
                if isinstance(error, TableError)
                else TableError(f"the table of {self._feed.topic} is no longer followed: {cause}")
            )
            self._tell(state=State.FAILED, ready=False, cause=cause)
        finally:
            self._feed.close()
            self.waiting.give_up()

    def _try_turn(self) -> None:
        try:
            if not self._anchored:
                self._anchor()
            self._turn()
        except Lost as lost:
            self._anchored, self._lost = False, str(lost)
            self._tell(state=State.LOADING, ready=False, cause=str(lost))
        except KafkaError as error:
            if error.code not in RETRIABLE:
                raise
            # What was gathered is gone, and the fetcher has moved past it: the next turn begins at the store's offsets.
            self._anchored = False
            missing = self._feed.is_missing()
            self._tell(state=State.MISSING if missing else State.CUT_OFF, trouble=str(error))
            self._stop.wait(RETRY_S)

    def _anchor(self) -> None:
        """Sets the feed to where the store ends, after emptying the store where the two do not belong together."""
        identity = self._feed.identify()
        bounds = self._feed.bounds()
        about = self._store.about
        reason = self._lost or (self._why_not(about, identity, bounds) if about else None)
        if about is None or reason is not None:
            if reason is not None:
                log.warning("the table of %s is loaded again: %s", identity.topic, reason)
            # Told before it is done: whoever reads meanwhile looks at it again afterwards (Table.get).
            self._tell(state=State.LOADING, ready=False, loads=self.progress.loads + 1, cause=reason)
            self._store.begin_anew(identity, _now_ms())
        self._lost = None
        stored = _reached(self._store.about)
        positions = {p: stored.get(p, Reached(bound.start)) for p, bound in bounds.items()}
        self._feed.start(positions)
        self._goal = {p: bound.end for p, bound in bounds.items()}
        self._anchored = True
        self._sweeping = None
        self._report({p: one.next_offset for p, one in positions.items()}, self._goal, Changes())

    def _why_not(self, about: About, identity: Identity, bounds: dict[int, Bounds]) -> str | None:
        """Why the store cannot simply go on with the topic; None where it can."""
        known = about.identity
        if (known.cluster_id, known.topic) != (identity.cluster_id, identity.topic):
            raise StoreOfAnother(self._store.directory, str(known), str(identity))
        if known.topic_id != identity.topic_id:
            return f"the topic {identity.topic} was deleted and made anew"
        for partition, reached in _reached(about).items():
            bound = bounds.get(partition)
            if bound is None or reached.next_offset > bound.end:
                return f"partition {partition} no longer holds what was read of it, up to offset {reached.next_offset}"
            if reached.next_offset < bound.start:
                return (
                    f"partition {partition} begins at offset {bound.start} now, and the table had come to "
                    f"{reached.next_offset}: what was removed between may have been tombstones"
                )
        parted = self._feed.truncated_to(_reached(about))
        if parted:
            partition, offset = next(iter(parted.items()))
            return f"the log of partition {partition} lost what was read of it, from offset {offset} on"
        away_ms = _now_ms() - about.caught_up_ms
        retention_ms = int(self.settings.get("delete.retention.ms", DELETE_RETENTION_MS))
        behind = any(reached.next_offset < bounds[p].end for p, reached in _reached(about).items())
        if behind and away_ms > retention_ms:
            return (
                f"it was last complete {away_ms // 1000} s ago, and delete.retention.ms keeps tombstones for "
                f"{retention_ms // 1000} s only: some may be gone"
            )
        return None

    def _turn(self) -> None:
        now_s = time.monotonic()
        if now_s - self._asked_s > ASK_AGAIN_S:
            self._asked_s = now_s
            self._feed.ask_again()
        changes = self._gather()
        for partition in self._feed.add_new_partitions():
            log.info("partition %d of %s is read too", partition, self._feed.topic)
            self._goal[partition] = 0
        caught_up = self._is_caught_up()
        if changes.reached:
            self._store.apply(changes.by_key, changes.reached, _now_ms() if caught_up else None)
            self._noted_s = now_s
        elif caught_up and now_s - self._noted_s > STILL_HERE_S:
            self._note_still_here()
        self._sweep()
        stored = {p: one.next_offset for p, one in _reached(self._store.about).items()}
        self._report({**self.progress.reached, **stored}, self._ends(), changes)

    def _gather(self) -> Changes:
        """What one transaction takes: all there is, or as much as it may; while the table is behind, it waits a moment
        for more, for many small transactions write the same pages again and again."""
        changes = Changes()
        give_up_s = time.monotonic() + GATHER_S
        while True:
            fetched = self._feed.poll(POLL_MS)
            for one in fetched:
                changes.take(one, self._feed.position(one.partition.partition).offset_epoch)
            full = changes.records >= TRANSACTION_RECORDS_MAX or changes.size_bytes >= TRANSACTION_BYTES_MAX
            if not fetched or full or self._is_caught_up() or self._stop.is_set() or time.monotonic() > give_up_s:
                return changes

    def _is_caught_up(self) -> bool:
        positions = [self._feed.position(p) for p in self._goal]
        return all(position.offset >= position.last_stable_offset >= 0 for position in positions)

    def _ends(self) -> dict[int, int]:
        return {p: max(end, self._feed.position(p).last_stable_offset) for p, end in self._goal.items()}

    def _sweep(self) -> None:
        """Where retention moved a log's start, entries from before it go, a few at a time."""
        about = self._store.about
        assert about is not None
        starts = {p: self._feed.position(p).log_start_offset for p in self._goal}
        if self._sweeping is not None or any(start > about.swept.get(p, 0) for p, start in starts.items()):
            self._sweeping = self._store.sweep(starts, self._sweeping)

    def _note_still_here(self) -> None:
        self._noted_s = time.monotonic()
        self._store.apply({}, {}, _now_ms())

    def _report(self, reached: dict[int, int], ends: dict[int, int], changes: Changes) -> None:
        ready = self.progress.ready or all(reached.get(p, 0) >= end for p, end in self._goal.items())
        if self._feed.is_missing():
            state = State.MISSING
        elif self._feed.is_cut_off():
            state = State.CUT_OFF
        else:
            state = State.LIVE if ready else State.LOADING
        if not ready and time.monotonic() - self._logged_s > SAY_SO_S:
            self._logged_s = time.monotonic()
            left = sum(max(0, end - reached.get(p, 0)) for p, end in ends.items())
            log.info("loading %s: %s records to go", self._feed.topic, f"{left:,}")
        self._tell(
            state=state,
            ready=ready,
            trouble=None if state in (State.LIVE, State.LOADING) else self.progress.trouble,
            reached=reached,
            ends=ends,
            records=self.progress.records + changes.records,
            keyless=self.progress.keyless + changes.keyless,
        )
        self.waiting.reached(reached)

    def _tell(self, **changed: object) -> None:
        before = self.progress
        values = {name: getattr(before, name) for name in Progress.__slots__}
        now = Progress(**{**values, **changed})
        if now != before:
            with self.changed:
                self.progress = now
                self.changed.notify_all()


def _reached(about: About | None) -> dict[int, Reached]:
    return {p: Reached(*one) for p, one in about.reached.items()} if about else {}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
