"""A consume-transform-produce loop on librdkafka, as a process of its own: it may be killed, paused or fenced at any
moment, and is started again under the same transactional id.

python -m proofs.copy_loop BOOTSTRAP GROUP PROTOCOL SOURCE TARGET TRANSACTIONAL_ID
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

BATCH = 100
CALL_LIMIT_S = 10
STUCK_S = 20
TRANSACTION_TIMEOUT_MS = 8_000
SESSION_TIMEOUT_MS = 6_000
PREFIX = b"copy of "
"""what the loop makes of a value"""
FENCED, STUCK = 3, 4
"""how the process ends: another has its transactional id by now; a call did not come back"""


class Watch(threading.Thread):
    """Ends the process where a call stays away far beyond the time that it was given, as somebody who looks after a
    service would: the next one takes its transactional id. librdkafka remembers who coordinates a group, and since 2.10
    it lets go of brokers that are no longer in the metadata: `send_offsets_to_transaction` then waits without limit for
    a connection that nobody makes, until some other broker comes or goes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._call = ""
        self._since_s = 0.0

    @contextmanager
    def over(self, call: str) -> Iterator[None]:
        self._since_s, self._call = time.monotonic(), call
        try:
            yield
        finally:
            self._call = ""

    def run(self) -> None:
        while True:
            time.sleep(1)
            if self._call and time.monotonic() - self._since_s > STUCK_S:
                print(f"{self._call} did not come back in {STUCK_S} s", file=sys.stderr, flush=True)
                os._exit(STUCK)


class CopyLoop:
    def __init__(self, consumer: Consumer, producer: Producer, source: str, target: str, watch: Watch) -> None:
        self._consumer = consumer
        self._producer = producer
        self._target = target
        self._watch = watch
        self._gathered: list[Message] = []
        consumer.subscribe([source], on_revoke=self._lose, on_lost=self._lose)

    def step(self) -> None:
        # The member that these records are read as. Taken later, it could be the next one: librdkafka joins again in
        # the background, and one that is no member at all may commit whatever it likes.
        member, name = self._consumer.consumer_group_metadata(), self._consumer.memberid()
        self._gather()
        if self._gathered and name:
            self._copy(self._gathered, member)
        elif self._gathered:
            self._go_back()

    def _gather(self) -> None:
        self._gathered, wait_s = [], 0.5
        while len(self._gathered) < BATCH and (message := self._consumer.poll(wait_s)) is not None:
            wait_s = 0
            if message.error() is None:
                self._gathered.append(message)

    def _lose(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Called by `poll`, before these partitions are another's: whoever that is reads them again."""
        gone = {(one.topic, one.partition) for one in partitions}
        self._gathered = [one for one in self._gathered if (one.topic(), one.partition()) not in gone]

    def _copy(self, messages: list[Message], member: object) -> None:
        producer = self._producer
        producer.begin_transaction()
        try:
            for message in messages:
                producer.produce(self._target, PREFIX + message.value(), partition=message.partition())
            ends = {(one.topic(), one.partition()): one.offset() + 1 for one in messages}
            offsets = [TopicPartition(topic, partition, end) for (topic, partition), end in ends.items()]
            self._call("send_offsets", lambda: producer.send_offsets_to_transaction(offsets, member, CALL_LIMIT_S))
            self._call("commit", lambda: producer.commit_transaction(CALL_LIMIT_S))
        except KafkaException as fault:
            if not fault.args[0].txn_requires_abort():
                raise
            self._call("abort", lambda: producer.abort_transaction(CALL_LIMIT_S))
            self._go_back()

    def _call(self, name: str, call: Callable[[], object]) -> None:
        while True:
            try:
                with self._watch.over(name):
                    call()
                return
            except KafkaException as fault:
                if not fault.args[0].retriable():
                    raise

    def _go_back(self) -> None:
        """To what is committed: what was read since is read again."""
        assigned = self._consumer.assignment()
        if not assigned:
            return
        with self._watch.over("committed"):
            committed = self._consumer.committed(assigned, CALL_LIMIT_S)
        for place in committed:
            self._consumer.seek(TopicPartition(place.topic, place.partition, max(place.offset, 0)))


def main(bootstrap: str, group: str, protocol: str, source: str, target: str, name: str, debug: str = "") -> int:
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    common = {"bootstrap.servers": bootstrap, "log_level": 7 if debug else 3, **({"debug": debug} if debug else {})}
    reading = {"group.id": group, "group.protocol": protocol, "enable.auto.commit": False, **common}
    reading |= {"auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    if protocol == "classic":
        reading |= {"session.timeout.ms": SESSION_TIMEOUT_MS, "heartbeat.interval.ms": 1000}
    writing = {"transactional.id": name, "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS, **common}
    consumer, producer, watch = Consumer(reading), Producer(writing), Watch()
    watch.start()
    try:
        with watch.over("init"):
            producer.init_transactions(CALL_LIMIT_S)
        loop = CopyLoop(consumer, producer, source, target, watch)
        while not ending.is_set():
            loop.step()
    except KafkaException as fault:
        print(fault, file=sys.stderr, flush=True)
        return FENCED if fault.args[0].fatal() else 1
    with watch.over("close"):
        consumer.close()
    return 0


if __name__ == "__main__":
    os._exit(main(*sys.argv[1:]))
