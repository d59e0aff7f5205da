"""Spark's own Kafka connector against a cluster, in a process of its own: jars belong to a JVM from its start.

    python spark_connector.py JARS BOOTSTRAP TOPIC

Reads TOPIC, writes its rows to TOPIC-copy, reads the copy, follows it as a stream; prints what it saw as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from penstock.pipeline import session


def rows(frame: Any) -> list[list[Any]]:
    found = frame.selectExpr("string(key)", "string(value)", "partition", "offset").collect()
    return sorted([list(row) for row in found], key=lambda row: (row[2], row[3]))


def main(jars: str, bootstrap: str, topic: str) -> None:
    listed = ",".join(str(jar) for jar in sorted(Path(jars).glob("*.jar")))
    spark = session("connector", master="local[2]", **{"spark.jars": listed})
    there = {"kafka.bootstrap.servers": bootstrap}
    read = spark.read.format("kafka").options(**there, subscribe=topic).load()
    read.select("key", "value").write.format("kafka").options(**there, topic=f"{topic}-copy").save()
    copied = spark.read.format("kafka").options(**there, subscribe=f"{topic}-copy").load()
    streamed = spark.readStream.format("kafka").options(**there, subscribe=topic, startingOffsets="earliest").load()
    query = streamed.writeStream.format("memory").queryName("streamed").trigger(availableNow=True).start()
    query.awaitTermination(60)
    seen = {
        "schema": read.schema.simpleString(),
        "read": rows(read),
        "copied": sorted(row[:2] for row in rows(copied)),
        "streamed": rows(spark.table("streamed")),
    }
    sys.stdout.write(json.dumps(seen) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
