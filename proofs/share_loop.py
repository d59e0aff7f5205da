"""A worker of a share group on librdkafka, as a process of its own, which writes down what it was given and what it was
told to be acknowledged: a line is in the file before the next call is made, so that a kill takes none away.

python -m proofs.share_loop BOOTSTRAP GROUP TOPIC JOURNAL

    got NANOSECONDS PARTITION OFFSET NUMBER      as `poll` returned it
    done NANOSECONDS PARTITION OFFSET            as `commit_sync` said that its acknowledgement is kept
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from confluent_kafka import KafkaException, Message, ShareConsumer

CALL_LIMIT_S = 10


class ShareLoop:
    def __init__(self, consumer: ShareConsumer, journal: str) -> None:
        self._consumer = consumer
        self._journal = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def step(self) -> None:
        messages = [one for one in self._consumer.poll(0.5) if one.error() is None]
        if not messages:
            return
        self._write("got", [f"{_place(one)} {one.value().decode()}" for one in messages])
        for message in messages:
            self._consumer.acknowledge(message)
        kept = {place.partition for place, fault in self._consumer.commit_sync(CALL_LIMIT_S).items() if fault is None}
        self._write("done", [_place(one) for one in messages if one.partition() in kept])

    def _write(self, what: str, places: list[str]) -> None:
        now = time.monotonic_ns()
        os.write(self._journal, "".join(f"{what} {now} {place}\n" for place in places).encode())


def _place(message: Message) -> str:
    return f"{message.partition()} {message.offset()}"


def main(bootstrap: str, group: str, topic: str, journal: str) -> int:
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "share.acknowledgement.mode": "explicit",
        "log_level": 3,
    }
    consumer = ShareConsumer(config)
    consumer.subscribe([topic])
    loop = ShareLoop(consumer, journal)
    while not ending.is_set():
        try:
            loop.step()
        except KafkaException as fault:
            print(fault, file=sys.stderr, flush=True)
    consumer.close()
    return 0


if __name__ == "__main__":
    os._exit(main(*sys.argv[1:]))
