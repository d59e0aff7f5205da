"""What the tests of the data source have in common: reads, and streaming queries that run to their end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TIMEOUT_S = 90


def read(spark: Any, cluster: Any, topic: str, **options: Any) -> Any:
    """A batch read of one topic; None takes an option away."""
    given = {"kafka.bootstrap.servers": cluster.bootstrap, "subscribe": topic, **options}
    reader = spark.read.format("penstock")
    for name, value in given.items():
        if value is not None:
            reader = reader.option(name, value)
    return reader.load()


def places(frame: Any) -> list[tuple[int, int]]:
    """Partition and offset of every row, in order."""
    return sorted((row.partition, row.offset) for row in frame.select("partition", "offset").collect())


class Query:
    """A streaming query that gathers what it reads, batch by batch, and can be run again on its checkpoint."""

    def __init__(self, spark: Any, cluster: Any, topic: str, checkpoint: str, **options: Any) -> None:
        self._spark = spark
        self._checkpoint = checkpoint
        self._options = {
            "kafka.bootstrap.servers": cluster.bootstrap,
            "subscribe": topic,
            "startingOffsets": "earliest",
            "columns": "value,partition,offset",
            **options,
        }
        self.batches: dict[int, list[Any]] = {}

    def start(self, gather: Callable[[Any, int], None], **trigger: Any) -> Any:
        reader = self._spark.readStream.format("penstock")
        for name, value in self._options.items():
            if value is not None:
                reader = reader.option(name, value)
        writer = reader.load().writeStream.foreachBatch(gather).option("checkpointLocation", self._checkpoint)
        return (writer.trigger(**trigger) if trigger else writer).start()

    def run(self) -> list[str]:
        """Everything that is there now; the values of this run in the order of their batches."""
        self.batches = {}

        def gather(frame: Any, batch: int) -> None:
            self.batches[batch] = frame.collect()

        query = self.start(gather, availableNow=True)
        ended = query.awaitTermination(TIMEOUT_S)
        if not ended:
            query.stop()
        assert ended, f"the query did not end within {TIMEOUT_S} s"
        return self.values()

    def values(self) -> list[str]:
        return [row.value.decode() for batch in sorted(self.batches) for row in self.batches[batch]]

    def sizes(self) -> list[int]:
        return [len(self.batches[batch]) for batch in sorted(self.batches)]
