"""DuckDB, as both engines need it: to check a query against the columns of its topics, to name and type its result,
and to work out constants.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import duckdb
import pyarrow as pa
from sqlglot import exp

from penstock.sql.dialect import DUCKDB, duckdb_sql
from penstock.sql.errors import SqlError, did_you_mean
from penstock.sql.statement import Query
from penstock.sql.tables import TopicTable

SETTINGS = {
    "TimeZone": "UTC",
    # A query is about topics, not about files and variables of this process.
    "enable_external_access": False,
    "python_enable_replacements": False,
}
MISSING_COLUMN = re.compile(r'(?:Referenced column|does not have a column named) "(.+?)"')


def connect() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name, value in SETTINGS.items():
        connection.execute(f"SET {name} = {value!r}")
    return connection


def bind(connection: duckdb.DuckDBPyConnection, query: Query, tables: Sequence[TopicTable]) -> pa.Schema:
    """The schema of the result, or what is wrong with the query. `tables` are those of the query's mentions."""
    for ref, table in zip(query.refs, tables, strict=True):
        schema = pa.schema([pa.field(one.name, one.kind) for one in table.columns])
        connection.register(ref.view, schema.empty_table())
    try:
        return connection.sql(duckdb_sql(query.tree)).to_arrow_reader().schema
    except duckdb.Error as error:
        raise explained(error, query, tables) from error
    finally:
        for ref in query.refs:
            connection.unregister(ref.view)


def explained(error: Exception, query: Query, tables: Sequence[TopicTable]) -> SqlError:
    """DuckDB's words with the query's names in place of ours."""
    text = str(error)
    for ref in reversed(query.refs):
        text = text.replace(ref.view, ref.topic)
    missing = MISSING_COLUMN.search(text)
    if missing is None:
        return SqlError(text.partition("\n\nLINE")[0].strip())
    columns = [one.name for table in tables for one in table.columns]
    topics = ", ".join(dict.fromkeys(table.topic for table in tables))
    hint = did_you_mean(missing[1], columns) or _where_columns_are(tables)
    return SqlError(f"there is no column {missing[1]!r} in {topics or 'the query'}", hint)


def _where_columns_are(tables: Sequence[TopicTable]) -> str:
    for table in tables:
        if table.was_empty:
            return f"{table.topic} holds no record to tell columns from; --value-schema or --value-format names them"
        if all(one.member is None for one in table.columns):
            return f"the values of {table.topic} are {table.value.name}; --value-format chooses another format"
    return f"DESCRIBE {tables[0].topic if tables else 'TOPIC'} lists the columns"


def time_ms_of(connection: duckdb.DuckDBPyConnection, constant: exp.Expr) -> int | None:
    """The time that a constant expression stands for; None where it stands for none."""
    try:
        rows = connection.execute(f"SELECT epoch_ms(CAST(({constant.sql(DUCKDB)}) AS TIMESTAMPTZ))").fetchall()
    except duckdb.Error:
        return None
    ((found,),) = rows
    return None if found is None else int(found)


def type_names(connection: duckdb.DuckDBPyConnection, schema: pa.Schema) -> list[str]:
    """The columns' types as DuckDB calls them."""
    connection.register("described", schema.empty_table())
    try:
        return [str(one) for one in connection.sql("SELECT * FROM described").types]
    finally:
        connection.unregister("described")
