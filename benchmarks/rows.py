"""The table of what is measured: one row a figure, with what Penstock must reach."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """What is required: `ratio`, how many times better than Apache Kafka; `limit`, an absolute bound; or nothing."""

    key: str
    work: str
    unit: str
    higher_is_better: bool = False
    ratio: float | None = None
    limit: float | None = None
    digits: int = 2

    def better_by(self, ours: float, theirs: float) -> float:
        """How many times better ours is; 2.0 is twice the rate, or half the cost."""
        if min(ours, theirs) <= 0:
            return float("nan")
        return ours / theirs if self.higher_is_better else theirs / ours

    def requirement(self) -> str:
        if self.ratio is not None:
            return f"≥ {self.ratio:g} x"
        return f"< {self.limit:g} {self.unit}" if self.limit is not None else "–"


TRANSACTION_ROWS = (
    Row("txn_100", "transactions of 100 records", "txn/s", True, digits=0),
    Row("txn_100_records", "their records", "k msg/s", True, digits=1),
    Row("txn_100_cpu", "broker CPU a transaction", "us", digits=0),
    Row("txn_1000", "transactions of 1,000 records", "txn/s", True, digits=0),
    Row("txn_1000_records", "their records", "k msg/s", True, digits=1),
    Row("txn_1000_cpu", "broker CPU a transaction", "us", digits=0),
)
SHARE_ROWS = (
    Row("share", "one partition shared by 50 consumers", "k msg/s", True, digits=1),
    Row("share_cpu", "its broker CPU each", "us", digits=1),
    Row("share_p50", "shared at 500 msg/s, until delivered, p50", "ms"),
    Row("share_p99", "shared at 500 msg/s, until delivered, p99", "ms"),
    Row("share_done_p50", "shared at 500 msg/s, until acknowledged, p50", "ms"),
    Row("share_done_p99", "shared at 500 msg/s, until acknowledged, p99", "ms"),
)
ROWS = (
    Row("produce_100", "produce 100 B batched", "M msg/s", True, ratio=1.4),
    Row("produce_100_cpu", "its broker CPU a million", "s", ratio=6, digits=3),
    Row("produce_100_small", "produce 100 B in batches of 16 KiB", "M msg/s", True),
    Row("produce_100_small_cpu", "its broker CPU a million", "s", digits=3),
    Row("produce_1000", "produce 1000 B batched", "MB/s", True, ratio=2, digits=0),
    Row("consume", "consume 100 B", "M msg/s", True, ratio=1.2),
    Row("consume_cpu", "its broker CPU a million", "s", ratio=3, digits=3),
    Row("single", "one record a request", "k req/s", True, ratio=5, digits=1),
    Row("single_cpu", "its broker CPU each", "us", ratio=8, digits=1),
    Row("single_first", "one record a request, the first after the start", "k req/s", True, ratio=5, digits=1),
    Row("single_first_cpu", "its broker CPU each", "us", ratio=8, digits=1),
    Row("e2e_p50", "end to end at 1,000 msg/s, p50", "ms", ratio=2),
    Row("e2e_p99", "end to end at 1,000 msg/s, p99", "ms", ratio=4),
    Row("e2e_p999", "end to end at 1,000 msg/s, p99.9", "ms", ratio=2),
    *TRANSACTION_ROWS,
    *SHARE_ROWS,
    Row("start", "start until the port answers", "s", ratio=10),
    Row("memory_idle", "resident memory, idle", "MB", ratio=6, digits=0),
    Row("memory_loaded", "resident memory, after the load", "MB", ratio=8, digits=0),
    Row("connections_memory", "2,000 idle connections, memory more", "MB", limit=60, digits=1),
    Row("partitions_start", "10,000 partitions, start until all are led", "s", limit=5),
    Row("partitions_cpu", "10,000 partitions, idle CPU", "%", limit=2),
    Row("partitions_memory", "10,000 partitions, resident memory", "MB", limit=500, digits=0),
)
BY_KEY = {row.key: row for row in ROWS}
