"""A continuous result on DuckDB, in bounded memory: each batch that arrives is asked by itself.

Rows that are filtered and projected are told as they come. Groups keep their sums, counts, least and greatest values,
one row a group, and those that changed are told again. Whatever would need rows that have passed (joins, windows,
DISTINCT, an order, other aggregates) is refused, with the way to get it.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
from sqlglot import exp

from penstock.sql.binding import connect, explained
from penstock.sql.dialect import duckdb_sql
from penstock.sql.errors import SqlError
from penstock.sql.following import Arrival, follow
from penstock.sql.grouping import Grouped, grouped
from penstock.sql.planning import Plan
from penstock.sql.results import conformed, idle

GROUPS_MAX = 1_000_000
PENDING_ROWS_MAX = 2_000_000
"""rows of groups that wait to be merged: while history is read, groups are told now and then, not with each batch"""
REFUSED: list[tuple[type[exp.Expr], str]] = [
    (exp.Join, "a join"),
    (exp.SetOperation, "UNION, EXCEPT or INTERSECT"),
    (exp.Window, "a window function"),
    (exp.Distinct, "DISTINCT"),
    (exp.Order, "ORDER BY"),
    (exp.With, "WITH"),
    (exp.Subquery, "a subquery"),
    (exp.Offset, "OFFSET"),
    (exp.Exists, "EXISTS"),
]
INSTEAD = "--engine spark --stream keeps what it needs for more kinds of queries; without --stream all are answered"


def run(plan: Plan) -> Iterator[pa.RecordBatch]:
    tree = plan.query.tree
    check(tree, len(plan.scans))
    groups = grouped(tree) if is_grouped(tree) else None
    return _run(plan, groups)


def check(tree: exp.Query, topics: int) -> None:
    for kind, name in REFUSED:
        if tree.find(kind) is not None:
            raise SqlError(f"{name} has no continuous result on DuckDB", INSTEAD)
    if topics != 1 or any(one.args.get("query") for one in tree.find_all(exp.In)):
        raise SqlError("a continuous result on DuckDB is of one topic", INSTEAD)


def is_grouped(tree: exp.Query) -> bool:
    return tree.args.get("group") is not None or tree.find(exp.AggFunc) is not None


def _run(plan: Plan, groups: Grouped | None) -> Iterator[pa.RecordBatch]:
    (scan,) = plan.scans
    connection = connect()
    try:
        state = None if groups is None else Groups(connection, groups, scan.view, scan.reading.schema)
        for arrival in follow(scan, plan.brokers):
            found = _rows(connection, plan, arrival) if state is None else state.told(arrival)
            if found is None:
                yield idle(plan.schema)
            else:
                yield from conformed(found, plan.schema).to_batches()
    except duckdb.Error as error:
        raise explained(error, plan.query, [scan.table]) from error
    finally:
        connection.close()


def _rows(connection: duckdb.DuckDBPyConnection, plan: Plan, arrival: Arrival) -> pa.Table | None:
    if not arrival.batches:
        return None
    connection.register(plan.scans[0].view, pa.Table.from_batches(arrival.batches))
    return connection.sql(duckdb_sql(plan.query.tree)).to_arrow_table()


class Groups:
    """`state` has one row a group, `fresh` what arrived since groups were last told."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, groups: Grouped, view: str, schema: pa.Schema) -> None:
        self._connection = connection
        self._groups = groups
        self._view = view
        connection.register(view, schema.empty_table())
        connection.execute(f"CREATE TEMP TABLE state AS {duckdb_sql(groups.partial)} LIMIT 0")
        connection.execute("CREATE TEMP TABLE fresh AS FROM state")
        self._types = {str(name): str(kind) for name, kind, *_ in connection.execute("DESCRIBE state").fetchall()}
        self._pending = 0

    def told(self, arrival: Arrival) -> pa.Table | None:
        """The groups that changed, once it is time to tell them."""
        if arrival.batches:
            self._connection.register(self._view, pa.Table.from_batches(arrival.batches))
            self._connection.execute(f"INSERT INTO fresh {duckdb_sql(self._groups.partial)}")
            self._pending = self._count("fresh")
        if self._pending and (arrival.caught_up or self._pending > PENDING_ROWS_MAX):
            return self._merged()
        return None

    def _merged(self) -> pa.Table:
        same = " AND ".join(f"state.{key} IS NOT DISTINCT FROM fresh.{key}" for key in self._groups.keys) or "TRUE"
        columns = [*self._groups.keys, *(self._merge(name, by) for name, by in self._groups.merges.items())]
        by_keys = f"GROUP BY {', '.join(self._groups.keys)}" if self._groups.keys else ""
        run = self._connection.execute
        run(
            f"CREATE OR REPLACE TEMP TABLE changed AS SELECT {', '.join(columns)} FROM (FROM fresh UNION ALL "
            f"SELECT state.* FROM state SEMI JOIN fresh ON {same}) {by_keys}"
        )
        run(f"DELETE FROM state USING fresh WHERE {same}")
        run("INSERT INTO state FROM changed")
        run("DELETE FROM fresh")
        self._pending = 0
        if self._count("state") > GROUPS_MAX:
            raise SqlError(f"there are more than {GROUPS_MAX} groups, and each is kept", INSTEAD)
        return self._connection.sql(duckdb_sql(self._groups.final)).to_arrow_table()

    def _merge(self, name: str, by: str) -> str:
        """Of the type that the part has: the sum of counts would be wider."""
        return f"CAST({by}({name}) AS {self._types[name]}) AS {name}"

    def _count(self, table: str) -> int:
        ((count,),) = self._connection.execute(f"SELECT count(*) FROM {table}").fetchall()
        return int(count)
