"""`make demo`: a broker, a producer, a consumer group; then a pipeline on Spark with its result as a picture."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from penstock.client import Admin, Consumer, Producer, Text

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "build" / "demo-alerts.png"
ORDERS = ["espresso", "flat white", "cappuccino", "tea", "espresso", "filter coffee"]


def main() -> int:
    print("starting a broker: penstock up --ephemeral --port 0")
    began = time.monotonic()
    broker = subprocess.Popen(
        [sys.executable, "-m", "penstock.cli.main", "up", "--ephemeral", "--port", "0", "--set", "log.retention.ms=-1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert broker.stdout is not None
    line = broker.stdout.readline().strip()
    if not line.startswith("ready: "):
        print("the broker did not start; `penstock up` says why", file=sys.stderr)
        return 1
    address = line.removeprefix("ready: ")
    print(f"{line}   ({time.monotonic() - began:.2f} s after the start)")
    try:
        show(address)
        print("\nnow a pipeline on Spark: examples/log_alerts.py, half an hour of logs of five services", flush=True)
        PICTURE.parent.mkdir(exist_ok=True)
        pipeline = [sys.executable, "examples/run.py", "log_alerts", "--bootstrap", address, "--picture", str(PICTURE)]
        code = subprocess.run(pipeline, cwd=ROOT).returncode
    finally:
        broker.terminate()
        broker.wait(timeout=30)
    if code == 0:
        print("the broker has stopped. Next: `penstock up`, any Kafka client you like, and the other examples.")
    return code


def show(address: str) -> None:
    with Admin(address) as admin:
        admin.create_topic("orders", partitions=3)
        print("topic orders: 3 partitions")
    with Producer(address, key=Text(), value=Text()) as producer:
        for number, drink in enumerate(ORDERS):
            sent = producer.send("orders", drink, key=f"table-{number % 4}").result(10)
            print(f"  sent     {drink:14} to partition {sent.partition}, offset {sent.offset}")
    with Consumer(address, topics=["orders"], group="baristas", key=Text(), value=Text()) as consumer:
        seen = 0
        deadline = time.monotonic() + 30
        while seen < len(ORDERS) and time.monotonic() < deadline:
            record = consumer.poll(1.0)
            if record is not None:
                seen += 1
                print(f"  received {record.value:14} for {record.key}, partition {record.partition}")
        consumer.commit()
    if seen < len(ORDERS):
        raise SystemExit(f"only {seen} of {len(ORDERS)} messages arrived")
    print(f"all {seen} messages arrived, in order within each partition")


if __name__ == "__main__":
    raise SystemExit(main())
