"""The loads on three brokers: three copies, two of them in sync at least, acks=all."""

import os
import time
from dataclasses import dataclass, replace

from clusters import Cluster
from loads import Measured, load, transactions
from memory import MEMORY
from rows import TRANSACTION_ROWS
from servers import ServerFailed
from steps import BATCH_100, BATCH_1000, SINGLE, TRANSACTION_SIZES, Step, Values, cpu_us, transaction_values

PARTITIONS = 6
MANY = 10**9
"""records, more than a load sends in its time"""
COPIES = {"replicas": 3, "configs": "min.insync.replicas=2"}
SYNCED = {"replicas": 3, "configs": "min.insync.replicas=2,flush.messages=1"}
ALL = {"connections": PARTITIONS, "acks": -1}
WARM_TIMES = 2
"""as many records as are measured end warming up: who takes more of them in the same seconds would find the machine's
memory and disk in another state than the other did"""
LIMIT_S = 60.0
"""for a load that ends with its records"""
NEVER_MS = 60_000.0
"""stands for a delay that grows for as long as the load goes on"""


@dataclass(frozen=True)
class Sizes:
    """Seconds that a load takes, and the records of those that end with them: three brokers write 3 GB of them, which
    the kernel keeps in memory without making anybody wait for the disk."""

    memory_ready: bool = True
    settle_s: float = 5.0
    warm_s: float = 8.0
    load_s: float = 10.0
    records_100: int = 9_000_000
    records_1000: int = 1_000_000
    single_first: int = 10_000
    e2e_warm_s: float = 5.0
    e2e_s: float = 20.0
    transactions_warm_s: float = 5.0
    transactions_s: float = 8.0


FULL = Sizes()
QUICK = replace(
    FULL,
    memory_ready=False,
    settle_s=1.0,
    warm_s=1.5,
    load_s=2.0,
    single_first=1_000,
    e2e_warm_s=1.0,
    e2e_s=3.0,
    transactions_warm_s=1.0,
    transactions_s=2.0,
)


@dataclass
class Bench:
    """A cluster under measurement; `rates` are those of the loads so far, for what builds on them."""

    server: Cluster
    sizes: Sizes

    def __post_init__(self) -> None:
        self.rates: dict[str, float] = {}

    def produce(self, name: str, topic: dict[str, object], options: dict[str, int], records: int = MANY) -> Measured:
        """For `load_s`, or until there are so many records."""
        load(self.server, "create", topic=name, partitions=PARTITIONS, **topic)
        wanted = {**options, **ALL, "topic": name}
        self.ready()
        load(self.server, "produce", seconds=self.sizes.warm_s, records=WARM_TIMES * records, **wanted)
        self.ready()
        measured = load(self.server, "produce", seconds=self.sizes.load_s, records=records, **wanted)
        self.rates[name] = measured.result["records_per_s"]
        return measured

    def ready(self) -> None:
        """No load pays for what an earlier one left dirty, or for memory that is not at hand."""
        os.sync()
        if self.sizes.memory_ready:
            MEMORY.make_ready()


def idle(bench: Bench) -> Values:
    time.sleep(bench.sizes.settle_s)
    return {"memory_idle": bench.server.usage().rss_bytes / 1e6}


def single_first(bench: Bench) -> Values:
    """Without warming up, on purpose: what a test suite or a short-lived cluster sees."""
    load(bench.server, "create", topic="single-first", partitions=PARTITIONS, **COPIES)
    options = {**SINGLE, **ALL, "topic": "single-first", "records": bench.sizes.single_first}
    measured = load(bench.server, "produce", seconds=LIMIT_S, **options)
    return {"single_first": measured.result["records_per_s"] / 1e3, "single_first_cpu": cpu_us(measured)}


def produce_first(bench: Bench) -> Values:
    """The batched loads without warming up: they come before all others that are batched."""
    found = {}
    for name, options, records in (
        ("first-100", BATCH_100, bench.sizes.records_100),
        ("first-1000", BATCH_1000, bench.sizes.records_1000),
    ):
        load(bench.server, "create", topic=name, partitions=PARTITIONS, **COPIES)
        bench.ready()
        wanted = {**options, **ALL, "topic": name}
        found[name] = load(bench.server, "produce", seconds=bench.sizes.load_s, records=records, **wanted).result
    return {
        "produce_100_first": found["first-100"]["records_per_s"] / 1e6,
        "produce_1000_first": found["first-1000"]["mb_per_s"],
    }


def produce_100(bench: Bench) -> Values:
    measured = bench.produce("load-100", COPIES, BATCH_100, bench.sizes.records_100)
    return {"produce_100": bench.rates["load-100"] / 1e6, "produce_100_cpu": cpu_us(measured)}


def produce_1000(bench: Bench) -> Values:
    return {"produce_1000": bench.produce("load-1000", COPIES, BATCH_1000, bench.sizes.records_1000).result["mb_per_s"]}


def single(bench: Bench) -> Values:
    measured = bench.produce("single", COPIES, SINGLE)
    records = measured.result["records"]
    return {
        "single": bench.rates["single"] / 1e3,
        "single_cpu": cpu_us(measured),
        "single_kernel": measured.server_kernel_s / records * 1e6,
        "single_client": measured.client_cpu_s / records * 1e6,
    }


def flush(bench: Bench) -> Values:
    """Every batch is on the disks of two brokers at least before it is acked."""
    bench.produce("flush-100", SYNCED, BATCH_100, bench.sizes.records_100)
    bench.produce("flush-single", SYNCED, SINGLE)
    rates = bench.rates
    return {
        "flush_100": rates["flush-100"] / 1e6,
        "flush_100_cost": rates["load-100"] / rates["flush-100"],
        "flush_single": rates["flush-single"] / 1e3,
        "flush_single_cost": rates["single"] / rates["flush-single"],
    }


def end_to_end(bench: Bench) -> Values:
    """A cluster that falls behind for good has no percentile: it is told as a minute."""
    load(bench.server, "create", topic="end-to-end", partitions=1, **COPIES)
    options = {"topic": "end-to-end", "rate": 500, "acks": -1}
    try:
        load(bench.server, "e2e", seconds=bench.sizes.e2e_warm_s, **options)
        result = load(bench.server, "e2e", seconds=bench.sizes.e2e_s, **options).result
    except ServerFailed as failure:
        if "records arrived within" not in str(failure):
            raise
        return {"e2e_p50": NEVER_MS, "e2e_p99": NEVER_MS}
    return {"e2e_p50": result["p50_ms"], "e2e_p99": result["p99_ms"]}


def transactional(bench: Bench) -> Values:
    load(bench.server, "create", topic="transactions", partitions=PARTITIONS, **COPIES)
    values: Values = {}
    for size in TRANSACTION_SIZES:
        options = {"topic": "transactions", "partitions": PARTITIONS, "producers": PARTITIONS, "size": size}
        transactions(bench.server, seconds=bench.sizes.transactions_warm_s, **options)
        os.sync()
        measured = transactions(bench.server, seconds=bench.sizes.transactions_s, **options)
        values |= transaction_values(size, measured)
    return values


def memory_after_load(bench: Bench) -> Values:
    return {"memory_loaded": bench.server.usage().rss_bytes / 1e6}


# In the order in which they run on a fresh cluster.
STEPS = {
    "idle": Step(idle, ("memory_idle",)),
    "single_first": Step(single_first, ("single_first", "single_first_cpu")),
    "produce_first": Step(produce_first, ("produce_100_first", "produce_1000_first")),
    "produce_100": Step(produce_100, ("produce_100", "produce_100_cpu")),
    "produce_1000": Step(produce_1000, ("produce_1000",)),
    "single": Step(single, ("single", "single_cpu", "single_kernel", "single_client")),
    "end_to_end": Step(end_to_end, ("e2e_p50", "e2e_p99")),
    "flush": Step(
        flush,
        ("flush_100", "flush_100_cost", "flush_single", "flush_single_cost"),
        needs=("produce_100", "single"),
    ),
    "memory": Step(memory_after_load, ("memory_loaded",), needs=("produce_100", "produce_1000", "single")),
    "transactional": Step(transactional, tuple(row.key for row in TRANSACTION_ROWS)),
}
