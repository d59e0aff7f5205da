"""The partition of each row: the one that it asks for, else by its key, else in turn."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.columnar.encode import partition_of

NO_PARTITION = -1


class Placement:
    """Rows without a key go to one partition after the other, in runs that fill a batch."""

    def __init__(self) -> None:
        self._turns: dict[str, int] = {}
        """by topic, the partition whose turn it is."""

    def choose(self, topic: str, rows: pa.RecordBatch, count: int, batch_bytes: int) -> npt.NDArray[np.int32]:
        """A partition for each row, by the columns partition and key; what a row asks for is not checked."""
        partitions = np.full(rows.num_rows, NO_PARTITION, np.int32)
        free = np.ones(rows.num_rows, np.bool_)
        if (at := rows.schema.get_field_index("partition")) >= 0:
            asked = rows.column(at)
            free = asked.is_null().to_numpy(zero_copy_only=False)
            partitions[:] = asked.fill_null(NO_PARTITION).cast(pa.int32()).to_numpy(zero_copy_only=False)
        if (at := rows.schema.get_field_index("key")) >= 0 and free.any():
            by_key = partition_of(rows.column(at), count)
            partitions = np.where(free, by_key, partitions)
            free = free & (by_key == NO_PARTITION)
        without = np.flatnonzero(free)
        if without.size:
            run = max(1, batch_bytes * rows.num_rows // max(1, rows.nbytes))
            partitions[without] = self._in_turn(topic, without.size, run, count)
        return partitions

    def _in_turn(self, topic: str, rows: int, run: int, count: int) -> npt.NDArray[np.int64]:
        turns = self._turns.get(topic, 0) + np.arange(rows) // run
        self._turns[topic] = (int(turns[-1]) + 1) % count
        return turns % count
