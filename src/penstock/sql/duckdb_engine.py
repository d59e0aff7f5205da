"""A plan on DuckDB, in this process: rows flow in as Arrow batches while they are read, and out as they are found."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa

from penstock.sql.binding import connect, explained
from penstock.sql.dialect import duckdb_sql
from penstock.sql.planning import Plan
from penstock.sql.reading import Rows

RESULT_ROWS = 8_192
"""of one batch of the result: the first rows are there before all are"""


def run(plan: Plan) -> Iterator[pa.RecordBatch]:
    sources = [Rows(scan, plan.brokers) for scan in plan.scans]
    connection = connect()
    try:
        for rows in sources:
            connection.register(rows.scan.view, rows)
        yield from connection.sql(duckdb_sql(plan.query.tree)).to_arrow_reader(RESULT_ROWS)
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise _cause(error, sources, plan) from error
    finally:
        connection.close()


def _cause(error: Exception, sources: list[Rows], plan: Plan) -> Exception:
    """What went wrong in reading a topic, where that is it; else what is wrong with the query."""
    for rows in sources:
        if rows.failure is not None:
            return rows.failure
    return explained(error, plan.query, [scan.table for scan in plan.scans])
