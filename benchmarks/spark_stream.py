"""How long a record takes through a streaming query: from the time it is due at the producer until a consumer has it.

    python benchmarks/spark_stream.py BOOTSTRAP TOPIC RATE

is the producer, a process of its own: it prints when it began, sends record n at n/RATE seconds after that, and ends
when its input does. A record that is sent late is measured from when it was due.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from servers import ServerFailed
from spark_topics import PARTITIONS

VALUE_BYTES = 100
LATE_S = 120.0
"""after the last record was due, how long we wait for those that are missing."""
NS_PER_S = 1_000_000_000


def produce(bootstrap: str, topic: str, rate: int) -> None:
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "log_level": 2})
    producer.list_topics(topic, timeout=30)
    began_ns = time.time_ns()
    print(began_ns, flush=True)
    sent = 0
    while not ended.is_set():
        due = (time.time_ns() - began_ns) * rate // NS_PER_S
        for number in range(sent, due):
            producer.produce(topic, (b"%d " % number).ljust(VALUE_BYTES, b"."), partition=number % PARTITIONS)
        sent = max(sent, due)
        producer.poll(0)
        time.sleep(0.5 / rate)
    producer.flush(30)


@contextmanager
def produced(bootstrap: str, topic: str, rate: int) -> Iterator[int]:
    """The time at which it began, in ns since 1970."""
    command = [sys.executable, str(Path(__file__)), bootstrap, topic, str(rate)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line:
                raise ServerFailed(f"the producer ended at once: {' '.join(command)}")
            yield int(line)
        finally:
            process.stdin.close()


def latencies_ms(bootstrap: str, topic: str, rate: int, began_ns: int, first: int, end: int) -> list[float]:
    """Of the records from `first` up to but not including `end`, each once, sorted; none of them may be missing."""
    group = f"benchmark-{uuid4().hex}"
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, "log_level": 2}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
    took: dict[int, float] = {}
    give_up_ns = began_ns + end * NS_PER_S // rate + int(LATE_S * NS_PER_S)
    try:
        while len(took) < end - first:
            # One by one: asked for several, the consumer waits until there are so many.
            message = consumer.poll(0.1)
            number = -1 if message is None or message.error() else _number(message.value())
            if first <= number < end and number not in took:
                took[number] = (time.time_ns() - began_ns - number * NS_PER_S // rate) / 1e6
            if time.time_ns() > give_up_ns:
                raise ServerFailed(f"{end - first - len(took)} of {end - first} records did not come to {topic}")
    finally:
        consumer.close()
    return sorted(took.values())


def _number(value: bytes | None) -> int:
    return int(value.partition(b" ")[0]) if value else -1


def percentile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


if __name__ == "__main__":
    produce(sys.argv[1], sys.argv[2], int(sys.argv[3]))
