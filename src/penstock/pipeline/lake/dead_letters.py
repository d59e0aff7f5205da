"""Records that are no rows, to a topic: as they were, with Kafka Connect's headers that say where from and why.

A table's commit does not cover them: a batch that is run again writes its dead letters again. Topic, partition and
offset in the headers tell those that are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.pipeline.lake.layout import HEADERS

if TYPE_CHECKING:
    from penstock.columnar.writing import TopicWriter

PREFIX = "__connect.errors."


@dataclass(frozen=True)
class DeadLetters:
    bootstrap: str
    topic: str
    client: Mapping[str, str] = field(default_factory=dict, repr=False)

    def open(self) -> Writing:
        return Writing(self)


class Writing:
    """Of one task; connects with the first letter."""

    def __init__(self, target: DeadLetters) -> None:
        self._target = target
        self._writer: TopicWriter | None = None

    def write(self, letters: pa.RecordBatch) -> None:
        if self._writer is None:
            from penstock.columnar.writing import TopicWriter  # noqa: PLC0415 a task without dead letters needs no numba

            self._writer = TopicWriter(self._target.bootstrap, self._target.client, topic=self._target.topic)
        columns = {name: letters.column(name) for name in ("key", "value", "timestamp")}
        headers = pa.array([_headers(row) for row in letters.drop_columns(["key", "value"]).to_pylist()], HEADERS)
        self._writer.write(pa.record_batch({**columns, "headers": headers}))

    def close(self) -> None:
        """Until brokers have them all."""
        if self._writer is not None:
            self._writer.close()


def _headers(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    told = {
        "topic": row["topic"],
        "partition": row["partition"],
        "offset": row["offset"],
        "exception.message": row["_error"],
    }
    own = [{"key": PREFIX + name, "value": str(value).encode()} for name, value in told.items()]
    return [*(row.get("headers") or []), *own]
