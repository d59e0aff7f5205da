"""What is measured of three brokers: one row a figure, with what Penstock must reach."""

from rows import TRANSACTION_ROWS, Row

ROWS = (
    Row("produce_100", "produce 100 B batched", "M msg/s", True, ratio=2.5),
    Row("produce_100_cpu", "its CPU of all brokers a million", "s", digits=3),
    Row("produce_1000", "produce 1000 B batched", "MB/s", True, ratio=2.5, digits=0),
    Row("produce_100_first", "produce 100 B batched, the first after the start", "M msg/s", True),
    Row("produce_1000_first", "produce 1000 B batched, the first after the start", "MB/s", True, digits=0),
    Row("single", "one record a request", "k req/s", True, ratio=6, digits=1),
    Row("single_cpu", "its CPU of all brokers each", "us", digits=1),
    Row("single_kernel", "of that in the kernel", "us", digits=1),
    Row("single_client", "the client's CPU each", "us", digits=1),
    Row("single_first", "one record a request, the first after the start", "k req/s", True, digits=1),
    Row("single_first_cpu", "its CPU of all brokers each", "us", digits=1),
    Row("flush_100", "produce 100 B batched, flush.messages=1", "M msg/s", True),
    Row("flush_100_cost", "what that costs: times slower than without", "x"),
    Row("flush_single", "one record a request, flush.messages=1", "k req/s", True, digits=2),
    Row("flush_single_cost", "what that costs: times slower than without", "x"),
    Row("e2e_p50", "end to end at 500 msg/s, p50", "ms"),
    Row("e2e_p99", "end to end at 500 msg/s, p99", "ms", limit=50),
    *TRANSACTION_ROWS,
    Row("start", "start until all three are ready", "s"),
    Row("memory_idle", "resident memory of all three, idle", "MB", digits=0),
    Row("memory_loaded", "resident memory of all three, after the load", "MB", digits=0),
)
BY_KEY = {row.key: row for row in ROWS}
