"""The rows of a scan as Arrow batches: several partitions at a time, decoded while the engine works on what came."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.columnar.ranges import read_range
from penstock.sql.catalog import Brokers
from penstock.sql.planning import Range, Scan

READERS_MAX = 4
BATCHES_AHEAD = 4
"""decoded batches that wait for the engine; each is bounded in rows and bytes"""
BATCH_ROWS = 65_536
LOOK_S = 0.1
"""how often a reader with a full queue looks whether anybody still wants its rows"""


@dataclass
class Rows:
    """The rows of a scan. An engine may ask for them more than once, each time from the beginning."""

    scan: Scan
    brokers: Brokers
    failure: Exception | None = field(default=None)
    """what went wrong while reading: an engine tells of it in words of its own"""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.scan.reading.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        pump = _Pump(self.scan, self.brokers)
        try:
            yield from pump.run()
        except Exception as failure:
            self.failure = failure
            raise
        finally:
            pump.stop()


class _Pump:
    """Threads that read ranges into one queue."""

    def __init__(self, scan: Scan, brokers: Brokers) -> None:
        self._scan = scan
        self._brokers = brokers
        self._ranges = list(reversed(scan.ranges))
        self._lock = threading.Lock()
        self._found: queue.Queue[pa.RecordBatch | Exception | None] = queue.Queue(BATCHES_AHEAD)
        self._stopped = threading.Event()

    def run(self) -> Iterator[pa.RecordBatch]:
        readers = min(READERS_MAX, len(self._ranges))
        for number in range(readers):
            threading.Thread(target=self._work, name=f"penstock-sql-{number}", daemon=True).start()
        while readers:
            found = self._found.get()
            if found is None:
                readers -= 1
            elif isinstance(found, Exception):
                raise found
            else:
                yield found

    def stop(self) -> None:
        self._stopped.set()

    def _work(self) -> None:
        try:
            while (one := self._next()) is not None:
                for batch in self._read(one):
                    if not self._put(batch):
                        return
            self._put(None)
        except Exception as failure:
            self._put(failure)

    def _next(self) -> Range | None:
        with self._lock:
            return self._ranges.pop() if self._ranges else None

    def _read(self, one: Range) -> Iterator[pa.RecordBatch]:
        reading = self._scan.reading
        for batch in read_range(
            self._brokers.bootstrap,
            self._scan.table.topic,
            one.partition,
            one.start,
            one.end,
            wanted=reading.sources,
            isolation=self._brokers.isolation,
            config=self._brokers.config,
            batch_rows=BATCH_ROWS,
            lost="skip",
        ):
            yield reading.apply(batch)

    def _put(self, found: pa.RecordBatch | Exception | None) -> bool:
        """False where nobody wants it any more."""
        while not self._stopped.is_set():
            try:
                self._found.put(found, timeout=LOOK_S)
                return True
            except queue.Full:
                continue
        return False
