"""Doors of the cores that the simulator listens at: what a live broker answers is judged as it answers.

P2   a batch that is sent again is known by its sequence, gets its first offsets back and is not appended
P3   a gap, and an epoch that is over, are refused; what is in order is not
R7   where a leader says that its log ends, no leader of its epoch or an earlier one has said more
G3, G4, T5: see `group_ghost`, `consumer_ghost` and `transaction_ghost`
R15  who knows another leader epoch than the leader's is refused, and told which of the two is newer; an ISR is changed
     only by the leader of the epoch, from the partition epoch in force, and with brokers as they are registered
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import OFFSETS_TOPIC
from penstock.broker.handlers.controlling import alter_partition
from penstock.core.groups import offsets
from penstock.core.log.log import Appended, Log
from penstock.core.replication.partition import EPOCH_UNKNOWN, Partition
from penstock.records.batch import HEADER_BYTES, SEQUENCE_MAX, BatchHeader, iterate, read_header
from penstock.sim.cluster import Node
from penstock.sim.invariants.consumer_ghost import ConsumerGhost
from penstock.sim.invariants.copies import Copy
from penstock.sim.invariants.ghost import Ghost
from penstock.sim.invariants.group_ghost import GroupGhost
from penstock.sim.invariants.producers import Recent
from penstock.sim.invariants.transaction_ghost import TransactionGhost
from penstock.sim.process import running_process

_REFUSED = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH)


class Ears:
    def __init__(
        self,
        nodes: dict[str, Node],
        ghost: Ghost,
        transactions: TransactionGhost,
        groups: GroupGhost,
        consumers: ConsumerGhost,
        touch: Callable[[Node], None],
        leads: Callable[[Node, str, str], bool],
        told: Callable[[str, str], None],
    ) -> None:
        self._nodes = nodes
        self._ghost = ghost
        self._transactions = transactions
        self._groups = groups
        self._consumers = consumers
        self._touch = touch
        """look at a broker in the middle of an event"""
        self._leads = leads
        """whether a node leads the partition of a state topic that has a key"""
        self._tell = told
        self._latest: dict[str, list[tuple[int, int]]] = {}
        """partition -> (leader epoch, the furthest end that it told)"""

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """While it is open, everything that goes through these doors is heard."""
        doors: list[tuple[Any, str, Callable[[Any], Any]]] = [
            (Log, "append", self._append),
            (Log, "truncate", partial(self._cut, Log.truncation_point)),
            (Log, "truncate_fully", partial(self._cut, lambda log, offset: 0)),
            (Partition, "check_epoch", self._check_epoch),
            (Partition, "follow", self._follow),
            (Partition, "read", self._read),
            (Partition, "copy", self._copy),
            (Partition, "latest_for_clients", self._latest_for_clients),
            (alter_partition, "decide_alter_partition", self._alter),
            (offsets, "commit", self._commit),
            (offsets, "fetch", self._fetch),
        ]
        before = [(owner, name, vars(owner)[name]) for owner, name, _ in doors]
        try:
            for owner, name, ear in doors:
                setattr(owner, name, ear(getattr(owner, name)))
            yield
        finally:
            for owner, name, original in before:
                setattr(owner, name, original)

    def _append(self, append: Any) -> Any:
        def heard(log: Log, buf: Any, at: int, size: int, **more: Any) -> Appended:
            if more.get("origin", "client") != "client" or size < HEADER_BYTES:
                unheard: Appended = append(log, buf, at, size, **more)
                return unheard
            header = read_header(buf, at)
            copy = self._copy_of(log) if header.producer_id >= 0 else None
            recent = None if copy is None else copy.recent.get(header.producer_id)
            try:
                appended: Appended = append(log, buf, at, size, **more)
            except KafkaError as error:
                if recent is not None and error.code in _REFUSED:
                    self._judge_refusal(log, header, recent, error)
                raise
            if recent is not None:
                self._judge_answer(log, header, recent, appended)
            return appended

        return heard

    def _follow(self, follow: Any) -> Any:
        def heard(partition: Partition, described: Any) -> bool:
            node = None if partition.leading is None else self._nodes.get(running_process().host)
            if node is not None and node.ready:
                self._ghost.resigns(node, partition)
            is_news: bool = follow(partition, described)
            return is_news

        return heard

    def _cut(self, end_of: Callable[[Log, int], int], cut: Any) -> Any:
        """`end_of`: where the cut leaves the log, at the least."""

        def heard(log: Log, offset: int) -> None:
            self._ghost.cutting[log] = end_of(log, offset)
            cut(log, offset)
            self._ghost.cutting.pop(log, None)

        return heard

    def _copy_of(self, log: Log) -> Copy | None:
        """The log's copy, brought up to date: several batches may come in one event."""
        node = self._nodes.get(running_process().host)
        if node is None or log.config.is_compacted:
            return None
        self._touch(node)
        return self._ghost.copies.get((node.id, log.directory.rpartition("/")[2]))

    def _judge_answer(self, log: Log, header: BatchHeader, recent: Recent, appended: Appended) -> None:
        repeated = next((one for one in recent.batches if _is_same(one, header)), None)
        if repeated is not None and header.producer_epoch == recent.epoch:
            if not appended.duplicate or appended.first_offset != repeated.base:
                self._tell("P2", f"{log.directory}: {repeated} was sent again, and answered {appended}")
        elif appended.duplicate:
            self._tell("P2", f"{log.directory}: {header} repeats nothing, and was answered {appended}")
        elif not _follows(recent, header):
            self._tell("P3", f"{log.directory}: {header} was appended after {recent}")

    def _judge_refusal(self, log: Log, header: BatchHeader, recent: Recent, error: KafkaError) -> None:
        repeated = header.producer_epoch == recent.epoch and any(_is_same(one, header) for one in recent.batches)
        if repeated:
            self._tell("P2", f"{log.directory}: {header} was sent again, and refused: {error.code.name}")
            return
        over = header.producer_epoch < recent.epoch
        if over != (error.code is ErrorCode.INVALID_PRODUCER_EPOCH) or (not over and _follows(recent, header)):
            self._tell("P3", f"{log.directory}: {header} after {recent} was refused: {error.code.name}")

    def _check_epoch(self, check_epoch: Any) -> Any:
        def heard(partition: Partition, epoch: int) -> None:
            told = ErrorCode.NONE
            try:
                check_epoch(partition, epoch)
            except KafkaError as error:
                told = error.code
                raise
            finally:
                if told is not _verdict(partition, epoch):
                    self._tell(
                        "R15", f"{partition.name}: epoch {epoch} in {partition.leader_epoch} is told {told.name}"
                    )

        return heard

    def _read(self, read: Any) -> Any:
        def heard(partition: Partition, wanted: Any, *args: Any, **more: Any) -> Any:
            fetched = read(partition, wanted, *args, **more)
            if fetched.aborted is not None and fetched.slices:
                self._judge_aborted(partition, wanted.fetch_offset, fetched)
            if _verdict(partition, wanted.leader_epoch) is not ErrorCode.NONE:
                told = f"{wanted.leader_epoch} was served in {partition.leader_epoch}"
                self._tell("R15", f"{partition.name}: who fetches in epoch {told}")
            return fetched

        return heard

    def _copy(self, copy: Any) -> Any:
        read = self._read(copy)

        def heard(partition: Partition, wanted: Any, replica_id: int, broker_epoch: int, *args: Any) -> Any:
            fetched = read(partition, wanted, replica_id, broker_epoch, *args)
            known = partition.cluster.brokers.get(replica_id)
            if known is not None and -1 < broker_epoch < known.epoch:
                life = f"{broker_epoch}, and is registered as {known.epoch}"
                self._tell("R15", f"{partition.name}: broker {replica_id} is served in its life {life}")
            return fetched

        return heard

    def _judge_aborted(self, partition: Partition, start: int, fetched: Any) -> None:
        copy = self._copy_of(partition.log)
        if copy is not None and partition.log.start_offset == 0:
            end = [header.next_offset for _, header in iterate(memoryview(fetched.slices[-1].read()))][-1]
            told = [(one.producer_id, one.first_offset) for one in fetched.aborted]
            self._transactions.told_aborted(str(partition.name), copy, start, end, told)

    def _latest_for_clients(self, latest: Any) -> Any:
        def heard(partition: Partition, end: int) -> int:
            told: int = latest(partition, end)
            if told == partition.high_watermark:
                self._judge_latest(str(partition.name), partition.leader_epoch, told)
            return told

        return heard

    def _judge_latest(self, name: str, epoch: int, end: int) -> None:
        before = self._latest.setdefault(name, [])
        further = next((one for one in before if one[0] <= epoch and one[1] > end), None)
        if further is not None:
            self._tell("R7", f"{name} ends at {end} in epoch {epoch}, and ended at {further[1]} in {further[0]}")
        if (epoch, end) not in before:
            before[:] = [one for one in before if one[0] != epoch or one[1] > end] + [(epoch, end)]

    def _alter(self, decide: Any) -> Any:
        def heard(image: Any, node: Any, request: Any) -> Any:
            result = decide(image, node, request)
            if not result.response.error_code:
                self._judge_alter(image, request, result.response)
            return result

        return heard

    def _commit(self, commit: Any) -> Any:
        def heard(state: Any, request: Any, *args: Any) -> Any:
            result = commit(state, request, *args)
            if result.records:
                self._groups.accepted(state, request)
                self._consumers.accepted(state, request)
            return result

        return heard

    def _fetch(self, fetch: Any) -> Any:
        def heard(state: Any, request: Any, *args: Any) -> Any:
            result = fetch(state, request, *args)
            if self._coordinates(request.group_id):
                for topic in result.response.topics:
                    for one in topic.partitions:
                        if not one.error_code:
                            self._groups.told(request.group_id, topic.name, one.partition_index, one.committed_offset)
            return result

        return heard

    def _coordinates(self, group_id: str) -> bool:
        """Whether the broker that answers is the one that the newest metadata name: another may have been left behind,
        and its answers are as old."""
        node = self._nodes[running_process().host]
        self._touch(node)
        return self._leads(node, OFFSETS_TOPIC, group_id)

    def _judge_alter(self, image: Any, request: Any, response: Any) -> None:
        for asked, answered in zip(request.topics, response.topics, strict=True):
            topic = image.topic_by_id(asked.topic_id)
            for one, answer in zip(asked.partitions, answered.partitions, strict=True):
                if answer.error_code in (ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED):
                    now = topic.partitions[one.partition_index]
                    known = (now.leader, now.leader_epoch, now.partition_epoch)
                    if known != (request.broker_id, one.leader_epoch, one.partition_epoch):
                        self._tell("R15", f"{topic.name}-{one.partition_index} is at {known}, and {one} was accepted")
                    self._judge_brokers(image, topic.name, one)

    def _judge_brokers(self, image: Any, topic: str, asked: Any) -> None:
        for member in asked.new_isr_with_epochs:
            broker = image.brokers.get(member.broker_id)
            if broker is None or member.broker_epoch not in (-1, broker.epoch):
                self._tell("R15", f"{topic}-{asked.partition_index}: {member} was accepted, {broker} is registered")


def _is_same(batch: Any, header: BatchHeader) -> bool:
    same_size = batch.next - batch.base == header.last_offset_delta + 1
    return bool(batch.sequence == header.base_sequence and same_size)


def _follows(recent: Recent, header: BatchHeader) -> bool:
    if header.producer_epoch != recent.epoch:
        return header.producer_epoch > recent.epoch and header.base_sequence == 0
    if not recent.batches:
        return header.base_sequence == 0
    last = recent.batches[-1]
    return header.base_sequence == (last.sequence + last.next - last.base) & SEQUENCE_MAX


def _verdict(partition: Partition, epoch: int) -> ErrorCode:
    if epoch in (EPOCH_UNKNOWN, partition.leader_epoch):
        return ErrorCode.NONE
    return ErrorCode.FENCED_LEADER_EPOCH if epoch < partition.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
