"""The query of the proof: events are numbered by key, with state in Spark, and written exactly once.

Every event of the source comes out as one record, its key's running count beside it. It runs until it is stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from penstock.pipeline import session
from penstock.pipeline.sink.foreach_batch import into

EVENTS_PER_BATCH = 200


class Numbering(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._count = handle.getValueState("count", "count long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        count = self._count.get()[0] if self._count.exists() else 0
        for row in rows:
            count += 1
            yield Row(key=key[0], value=f"{row.event} {count}")
        self._count.update((count,))

    def close(self) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bootstrap", "source", "topic", "checkpoint", "style"):
        parser.add_argument(name)
    args = parser.parse_args()
    # A task that fails is tried four times, as on a cluster; locally Spark would give up at once.
    spark = session("exactly-once", master="local[2,4]", **{"spark.sql.shuffle.partitions": "2"})
    events = (
        spark.readStream.format("penstock")
        .option("kafka.bootstrap.servers", args.bootstrap)
        .option("subscribe", args.source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", EVENTS_PER_BATCH)
        .load()
        .selectExpr("string(key) AS key", "string(value) AS event")
    )
    numbered = events.groupBy("key").transformWithState(
        statefulProcessor=Numbering(), outputStructType="key string, value string", outputMode="Append", timeMode="None"
    )
    if args.style == "stream":
        writing = numbered.writeStream.format("penstock").options(bootstrap=args.bootstrap, topic=args.topic)
    else:
        writing = numbered.writeStream.foreachBatch(into(args.topic, bootstrap=args.bootstrap))
    writing.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
