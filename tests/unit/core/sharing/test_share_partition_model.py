"""A share-partition against a model that keeps every offset by itself, whatever happens in whatever order."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.base.errors import KafkaError
from penstock.core.share.batches import StateBatch
from penstock.core.sharing.acknowledging import Acknowledgement
from penstock.core.sharing.acquiring import Batch
from penstock.core.sharing.partition import Change, Limits, SharePartition
from penstock.core.sharing.states import AcknowledgeType, RecordState

AVAILABLE, ACQUIRED = RecordState.AVAILABLE, RecordState.ACQUIRED
ACKNOWLEDGED, ARCHIVED = RecordState.ACKNOWLEDGED, RecordState.ARCHIVED
LIMITS = Limits(max_locks=12, delivery_limit=3, lock_ms=100)
MEMBERS = ("a", "b", "c")
DELIVERIES_MAX = LIMITS.delivery_limit
"""of one record by one leader"""


class Record:
    def __init__(self) -> None:
        self.state = AVAILABLE
        self.member = ""
        self.count = 0
        self.deadline = 0
        self.pending: RecordState | None = None


class Sharing(RuleBasedStateMachine):
    @initialize(sizes=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5), st.booleans()), min_size=3, max_size=12))
    def begin(self, sizes):
        """A log of batches: (offsets missing before it, records, a control batch)."""
        self.log: list[tuple[int, int, bool]] = []
        end = 0
        for gap, count, control in sizes:
            self.log.append((end + gap, end + gap + count - 1, not control or count > 2))
            end += gap + count
        self.end = end
        self.start = 0
        self.now = 0
        self.model: dict[int, Record] = {}
        self.stored: list[StateBatch] = []
        self.share = SharePartition(0, [], LIMITS)
        self.changes: list[Change] = []
        self.acknowledged: set[int] = set()

    def real(self, offset: int) -> bool:
        return any(first <= offset <= last and good for first, last, good in self.log)

    @rule(member=st.sampled_from(MEMBERS), most=st.integers(1, 8), exact=st.booleans())
    def acquire(self, member, most, exact):
        batches, cursor = [], 0
        while (look := self.share.next_look(cursor, self.end)) is not None and len(batches) < 3:
            found = next(((f, last, g) for f, last, g in self.log if last >= look), None)
            if found is None:
                break
            batches.append(Batch(look, *found))
            cursor = found[1] + 1
        got = self.share.acquire(member, batches, self.now, max_records=most, exact=exact)
        offsets = [offset for first, last, _ in got for offset in range(first, last + 1)]
        assert not exact or len(offsets) <= most
        assert len(offsets) == len(set(offsets))
        for first, last, count in got:
            for offset in range(first, last + 1):
                record = self.model.setdefault(offset, Record())
                assert self.real(offset) and offset >= self.start
                assert record.state is AVAILABLE, "nobody had it, and it was not done"
                record.state, record.member, record.deadline = ACQUIRED, member, self.now + LIMITS.lock_ms
                record.count += 1
                assert record.count == count <= DELIVERIES_MAX

    @rule(member=st.sampled_from(MEMBERS), data=st.data())
    def acknowledge(self, member, data):
        owners = (member,) if data.draw(st.booleans()) else MEMBERS
        out = sorted(offset for offset, one in self.model.items() if one.member in owners)
        low = data.draw(st.sampled_from(out) if out else st.integers(0, self.end))
        high = data.draw(st.integers(low, low + 3))
        kinds = data.draw(st.lists(st.integers(0, 4), min_size=high - low + 1, max_size=high - low + 1))
        wanted = {offset: kinds[offset - low] for offset in range(max(low, self.share.start_offset), high + 1)}
        allowed = all(
            offset in self.model
            and self.model[offset].state is ACQUIRED
            and self.model[offset].member == member
            and self.model[offset].pending is None
            for offset in wanted
        )
        try:
            change = self.share.acknowledge(member, [Acknowledgement(low, high, kinds)], self.now)
        except KafkaError:
            assert not allowed
            return
        assert allowed
        for offset, kind in wanted.items():
            self._say(self.model[offset], kind)
        self.changes.append(change)

    def _say(self, record: Record, kind: int) -> None:
        if kind == AcknowledgeType.RENEW:
            record.deadline = self.now + LIMITS.lock_ms
        elif kind == AcknowledgeType.ACCEPT:
            record.pending = ACKNOWLEDGED
        elif kind == AcknowledgeType.RELEASE and record.count < DELIVERIES_MAX:
            record.pending = AVAILABLE
        else:
            record.pending = ARCHIVED

    @precondition(lambda self: self.changes)
    @rule(stored=st.booleans())
    def finish(self, stored):
        change = self.changes.pop(0)
        if stored:
            self._store(change.batches)
        self.share.finish(change, stored=stored)
        for first, last, _, _ in change.batches:
            for offset in range(first, last + 1):
                record = self.model[offset]
                target, record.pending = record.pending, None
                if stored and offset >= self.start:
                    assert target is not None
                    record.state, record.member = target, ""
                    if target is ACKNOWLEDGED:
                        self.acknowledged.add(offset)

    def _store(self, batches: list[StateBatch]) -> None:
        """As the share coordinator does: what comes later holds."""
        self.stored += batches

    @rule(step=st.integers(1, 120))
    def time_passes(self, step):
        self.now += step
        due = [
            one for one in self.model.values() if one.state is ACQUIRED and not one.pending and one.deadline <= self.now
        ]
        self._given_back(self.share.expire(self.now), due)

    @rule(member=st.sampled_from(MEMBERS))
    def member_leaves(self, member):
        had = [one for one in self.model.values() if one.member == member and not one.pending]
        self._given_back(self.share.release(member), had)

    def _given_back(self, back, records: list[Record]) -> None:
        for record in records:
            if record.count >= DELIVERIES_MAX:
                record.pending = ARCHIVED
            else:
                record.state, record.member = AVAILABLE, ""
        self._store(back.batches)
        self.changes.append(back.change)

    @rule(by=st.integers(1, 4))
    def the_log_starts_later(self, by):
        self.start = min(self.start + by, self.end)
        self.share.trim(self.start)
        for offset in [one for one in self.model if one < self.start and not self.model[one].pending]:
            self.model[offset] = Record()
            self.model[offset].state = ARCHIVED

    @precondition(lambda self: not self.changes)
    @rule()
    def another_leads(self):
        """It reads what was persisted; who had something does not have it any more."""
        start = self.share.start_offset
        merged: dict[int, StateBatch] = {}
        for batch in self.stored:
            for offset in range(max(batch.first_offset, start), batch.last_offset + 1):
                merged[offset] = batch._replace(first_offset=offset, last_offset=offset)
        self.stored = [merged[offset] for offset in sorted(merged)]
        self.share = SharePartition(start, self.stored, LIMITS)
        self.model = {offset: one for offset, one in self.model.items() if one.state in (ACKNOWLEDGED, ARCHIVED)}
        for offset, batch in merged.items():
            record = self.model.setdefault(offset, Record())
            record.state, record.count = RecordState(batch.delivery_state), batch.delivery_count

    @invariant()
    def sound(self):
        if hasattr(self, "share"):
            self.share.check()
            assert self.share.start_offset >= self.start
            for offset in range(self.start, self.share.start_offset):
                done = self.model.get(offset)
                assert not self.real(offset) or (done is not None and done.state in (ACKNOWLEDGED, ARCHIVED))

    def teardown(self):
        """Whoever goes on asking and accepting gets the rest of the log: nothing is stuck."""
        if not hasattr(self, "share"):
            return
        while self.changes:
            self.finish(stored=True)
        for _ in range(400):
            self.time_passes(LIMITS.lock_ms)
            while self.changes:
                self.finish(stored=True)
            self.acquire("a", 8, False)
            for run in [one for one in self.share.window if one.member == "a"]:
                change = self.share.acknowledge("a", [Acknowledgement(run.first, run.last, [1])], self.now)
                for offset in range(run.first, run.last + 1):
                    self.model[offset].pending = ACKNOWLEDGED
                self.changes.append(change)
            while self.changes:
                self.finish(stored=True)
            self.sound()
            if self.share.next_look(0, self.end) is None and not self.share.window.unfinished:
                return
        raise AssertionError("records were left that nobody could have")


TestSharing = Sharing.TestCase
TestSharing.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
