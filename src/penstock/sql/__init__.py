"""SQL over topics: one query, answered by DuckDB in this process or by Spark, once or continuously.

Doors: `query()` (the answer as an Arrow table), `stream()` (a continuous result), `explain()` (what would be read); the
`penstock sql` command stands on `asking.Question`, which gives the rows as they come.

Invariants:
1. Both engines are given the same rows: ranges of offsets, schemas and decoding are decided here, before either runs.
2. A predicate narrows what is read only where no row that it lets through could be left out; the engine evaluates it
   all the same.
3. Columns that a query does not name are neither fetched out of the records nor decoded.
4. Names and types of the result's columns are DuckDB's, whichever engine ran.

It never writes to a topic, and no consumer group knows of it. Importing this package loads neither engine.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.sql.asking import explain, query, stream
    from penstock.sql.errors import SqlError

__all__ = ["SqlError", "explain", "query", "stream"]

HOMES = {
    "SqlError": "penstock.sql.errors",
    "explain": "penstock.sql.asking",
    "query": "penstock.sql.asking",
    "stream": "penstock.sql.asking",
}


def __getattr__(name: str) -> object:
    home = HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)
