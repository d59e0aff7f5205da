"""A group shard with a log, a clock and clients that speak in lines of text: what the transcripts are played on.

Everything that happens is told in order: state changes, records written, answers given.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from struct import Struct

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.coordinator.batches import encode_batch, load_batches
from penstock.core.coordinator.result import CoordinatorRecord, Now
from penstock.core.coordinator.runtime import Pending, Runtime
from penstock.core.groups import records
from penstock.core.groups.config import GroupConfig
from penstock.core.groups.consumer import records as consumer_records
from penstock.core.groups.modern.metadata import Metadata
from penstock.core.groups.shard import GroupShard
from penstock.core.groups.streams.group import RECORD_KINDS as STREAMS_KINDS
from penstock.protocol.generated.consumer_protocol_subscription import ConsumerProtocolSubscription
from penstock.records.batch import patch

START_WALL_MS = 1_700_000_000_000
_SHORT = re.compile(r"-00000000-0000-4000-8000-0000000000(\d\d)")
_SIZE = Struct(">h")


class CountingRandom:
    """Ids by number, which transcripts can name: `c1#01` is the member id of client c1 that was made first."""

    def __init__(self) -> None:
        self.count = 0

    def bytes(self, count: int) -> bytes:
        self.count += 1
        return bytes.fromhex(f"{self.count:032d}")[-count:]

    def below(self, bound: int) -> int:
        return 0


def short(text: str) -> str:
    return _SHORT.sub(r"#\1", text)


def full(member_id: str) -> str:
    return re.sub(r"#(\d\d)$", r"-00000000-0000-4000-8000-0000000000\1", member_id)


def subscription(topics: list[str]) -> bytes:
    return _SIZE.pack(3) + bytes(ConsumerProtocolSubscription(topics=topics).encode(3))


class GroupDriver:
    """One shard and the shell around it, synchronous."""

    def __init__(self, config: GroupConfig) -> None:
        self.config = config
        self.random = CountingRandom()
        self.now = Now(0, START_WALL_MS)
        self.log: list[CoordinatorRecord] = []
        self.told: list[str] = []
        self.waiting: dict[int, tuple[str, Callable[[object], str]]] = {}
        self.answers: dict[str, object] = {}
        self.append_error: ErrorCode | None = None
        self.holds_commits = False
        self._states: dict[str, str] = {}
        self.metadata = Metadata()
        self.show_consumer_record: Callable[[int, CoordinatorRecord], str] | None = None
        self.show_streams_record: Callable[[int, CoordinatorRecord], str] | None = None
        self.runtime = Runtime(GroupShard(config, self.random, self.metadata))
        self.runtime.activate(0, self.now)

    @property
    def shard(self) -> GroupShard:
        return self.runtime.shard

    def request(
        self, name: str, operation: object, request: object, context: object, show: Callable[[object], str]
    ) -> None:
        """Submit and tell what came of it."""
        try:
            answer = self.runtime.submit(operation, request, context, self.now)  # type: ignore[arg-type]  # any pair that fits
        except KafkaError as error:
            answer = error
        if isinstance(answer, Pending):
            self.waiting[answer.ticket] = (name, show)
            self.settle()
            if answer.ticket in self.waiting:
                self.told.append(f"{name}: waits")
        else:
            self.settle()
            self._tell(name, answer, show)

    def settle(self) -> None:
        """Append what is queued, commit unless commits are held, hand out the answers."""
        self._tell_states()
        self._answer()
        while (batch := self.runtime.take_batch()) is not None:
            if self.append_error is not None:
                error, self.append_error = self.append_error, None
                self.told.append(f"append fails: {error.name}")
                self.runtime.append_failed(KafkaError(error), self.now)
            else:
                self.log += batch
                self.told += [f"write {self.show_record(record)}" for record in batch]
                self.runtime.appended(len(self.log) - 1, self.now)
            if not self.holds_commits:
                self.runtime.committed(len(self.log), self.now)
            self._tell_states()
            self._answer()
        self.runtime.check()
        if not self.holds_commits:
            self.shard.check()

    def show_record(self, record: CoordinatorRecord) -> str:
        kind = records.key_type(record.key)
        if kind in consumer_records.KINDS and self.show_consumer_record is not None:
            return short(self.show_consumer_record(kind, record))
        if kind in STREAMS_KINDS and self.show_streams_record is not None:
            return short(self.show_streams_record(kind, record))
        return show_record(record)

    def release(self) -> None:
        self.holds_commits = False
        self.runtime.committed(len(self.log), self.now)
        self.settle()

    def advance(self, by_ms: int) -> None:
        """Let time pass, from one deadline to the next."""
        until_ms = self.now.ms + by_ms
        while (deadline_ms := self.runtime.next_deadline_ms()) is not None and deadline_ms <= until_ms:
            self._move_to(max(deadline_ms, self.now.ms))
            mark = len(self.told)
            self.runtime.tick(self.now)
            self.settle()
            if len(self.told) > mark:
                self.told.insert(mark, f"after {self.now.ms} ms:")
        self._move_to(until_ms)

    def fail_over(self) -> None:
        """Another broker leads the partition: a new shard, loaded from the log."""
        self.runtime.fail()
        self._answer()
        self.runtime = self.reloaded()
        self.runtime.activate(len(self.log), self.now)
        self._states = {}
        self.settle()

    def reloaded(self) -> Runtime[GroupShard]:
        runtime = Runtime(GroupShard(self.config, self.random, self.metadata))
        if self.log:
            batch = encode_batch(self.log, self.now.wall_ms)
            patch(batch, 0, 0, 0)
            list(load_batches(runtime, batch))
        return runtime

    def _move_to(self, ms: int) -> None:
        self.now = Now(ms, START_WALL_MS + ms)

    def _answer(self) -> None:
        for ticket, response in self.runtime.take_answers():
            name, show = self.waiting.pop(ticket)
            self._tell(name, response, show)

    def _tell(self, name: str, answer: object, show: Callable[[object], str]) -> None:
        self.answers[name] = answer
        text = answer.code.name if isinstance(answer, KafkaError) else show(answer)
        self.told.append(short(f"{name}: {text}"))

    def _tell_states(self) -> None:
        states = {group_id: group.state.value for group_id, group in self.shard.state.groups.items()}
        consumers = self.shard.state.store.consumers
        states |= {group_id: group.state.value for group_id, group in consumers.items()}
        states |= {group_id: group.state.value for group_id, group in self.shard.state.store.streams.items()}
        for group_id in dict.fromkeys((*self._states, *states)):
            before, after = self._states.get(group_id, "none"), states.get(group_id, "none")
            if before != after:
                self.told.append(f"{group_id}: {before} -> {after}")
        self._states = states


def show_record(record: CoordinatorRecord) -> str:
    kind = records.key_type(record.key)
    if kind == records.GROUP_METADATA:
        group_id = records.read_group_key(record.key)
        if record.value is None:
            return f"group {group_id} tombstone"
        value = records.read_group_value(record.value)
        members = ", ".join(f"{member.member_id}={member.assignment.decode()!r}" for member in value.members)
        text = f"generation={value.generation} protocol={value.protocol} leader={value.leader} members=[{members}]"
        return short(f"group {group_id} {text}")
    group_id, topic, partition = records.read_offset_key(record.key)
    if record.value is None:
        return f"offset {group_id} {topic}-{partition} tombstone"
    return f"offset {group_id} {topic}-{partition} = {records.read_offset_value(record.value).offset}"
