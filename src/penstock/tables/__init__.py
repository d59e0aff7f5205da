"""A table from outside: the current value of every key of a compacted topic, by key, range and prefix.

A table is a reader of its topic (no group, all partitions, committed records only) that keeps the last record of each
key in an LMDB environment, and answers from there. Spark has no part in it.

Doors: `Table.open(bootstrap, topic, directory)` in Python; `http.application(tables)` and `service.serve` over HTTP,
which `penstock table serve` runs. Inside: `feed` (the topic), `changes` (batches to what they change), `store` (LMDB),
`follower` (the one thread that writes), `key_formats` and `value_formats` (keys and values as text).

Invariants:
1. The values and the offsets up to which they hold are written in one transaction: after a kill the store goes on where
   it stopped, and every record takes effect once.
2. One writer a directory, held by a lock on its file `owner`; readers never wait for it, save while the map grows.
3. A store is of one topic id of one cluster. A topic that was made anew, a log that lost what was not read yet or what
   was read already, an absence after which tombstones may be gone: each empties the store and loads it again.
4. Nobody is told of a table that is not whole: while it is loaded, or loaded again, look-ups are refused.
5. What is read from the store passes its checksum, or is an error.
6. Nothing that a table keeps is the only copy: the topic is the truth, and a store may be removed.

It never writes to a topic, commits no offsets, and decides nothing about what a value means.
"""

from __future__ import annotations

from penstock.tables.entries import Entry
from penstock.tables.errors import NotReached, StillLoading, StoreDamaged, StoreInUse, StoreOfAnother, TableError
from penstock.tables.table import AsOf, Table

__all__ = [
    "AsOf",
    "Entry",
    "NotReached",
    "StillLoading",
    "StoreDamaged",
    "StoreInUse",
    "StoreOfAnother",
    "Table",
    "TableError",
]
