"""A load of transactions: producers of confluent-kafka, each with a transactional id and one transaction at a time.

A program of its own, so that it shares no lock with whoever measures; it answers in JSON, as benchmarks/load does.
Every transaction writes to every partition. What was begun before the time is over is finished and counted.

    python benchmarks/transactional.py -server=127.0.0.1:9092 -topic=t -partitions=4 -producers=4 -size=100 -seconds=5
"""

import argparse
import json
import os
import sys
import threading
import time

from confluent_kafka import Producer

CALL_TIMEOUT_S = 60.0


class Load:
    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._began = 0.0
        self._counts: list[int] = []
        """transactions that were committed, one figure a producer"""
        self._together = threading.Barrier(options.producers, self._begin)
        """the time that producers need to be given their ids is not measured"""

    def run(self) -> dict[str, float]:
        names = [f"{self._options.topic}-{os.getpid()}-{number}" for number in range(self._options.producers)]
        producers = [threading.Thread(target=self._produce, args=(name,)) for name in names]
        for one in producers:
            one.start()
        for one in producers:
            one.join()
        if len(self._counts) != len(producers):
            raise SystemExit("a producer failed")
        seconds, transactions = time.monotonic() - self._began, sum(self._counts)
        records = transactions * self._options.size
        return {
            "transactions": transactions,
            "records": records,
            "seconds": seconds,
            "transactions_per_s": transactions / seconds,
            "records_per_s": records / seconds,
        }

    def _begin(self) -> None:
        self._began = time.monotonic()

    def _produce(self, name: str) -> None:
        try:
            producer = Producer({"bootstrap.servers": self._options.server, "transactional.id": name, "log_level": 2})
            producer.init_transactions(CALL_TIMEOUT_S)
            self._together.wait()
            self._counts.append(self._transactions(producer))
        except BaseException:
            self._together.abort()
            raise

    def _transactions(self, producer: Producer) -> int:
        options = self._options
        value, done = b"v" * options.value_bytes, 0
        while time.monotonic() < self._began + options.seconds:
            producer.begin_transaction()
            for number in range(options.size):
                producer.produce(options.topic, value, partition=number % options.partitions)
            producer.commit_transaction(CALL_TIMEOUT_S)
            done += 1
        return done


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-server", required=True)
    parser.add_argument("-topic", required=True)
    for name, standard in (("partitions", 4), ("producers", 4), ("size", 100), ("value-bytes", 100)):
        parser.add_argument(f"-{name}", type=int, default=standard)
    parser.add_argument("-seconds", type=float, default=5.0)
    result = Load(parser.parse_args(arguments)).run()
    times = os.times()
    print(json.dumps({"result": result, "client_cpu_s": times.user + times.system}))


if __name__ == "__main__":
    main(sys.argv[1:])
