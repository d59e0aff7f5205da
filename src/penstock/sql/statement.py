"""A query's text to a tree in which every topic is a view with a name of its own. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.optimizer.scope import Scope, traverse_scope

from penstock.sql.asof import AsOf, split_mark, take_clauses
from penstock.sql.dialect import complete_headers, parse_tokens, tokenize
from penstock.sql.errors import SqlError

VIEW = "penstock_"
EVERYTHING_USED = (exp.Pivot, exp.Columns, exp.Summarize)
"""What uses columns without naming them."""


@dataclass
class TopicRef:
    """One mention of a topic."""

    topic: str
    view: str
    """what it is called in the tree"""
    alias: str
    """what the query calls it"""
    as_of: AsOf | None
    scope: Scope
    star: bool = False
    """whether all its columns are used"""


@dataclass
class Query:
    tree: exp.Query
    refs: list[TopicRef]
    names: frozenset[str] = field(default_factory=frozenset)
    """every name in the query, in lower case: all columns that it uses are among them"""

    def uses(self, ref: TopicRef, column: str) -> bool:
        return ref.star or column.lower() in self.names


@dataclass(frozen=True)
class ShowTables:
    pass


@dataclass(frozen=True)
class DescribeTable:
    topic: str


Statement = Query | ShowTables | DescribeTable


def parse(text: str) -> Statement:
    try:
        tokens, clauses = take_clauses(tokenize(text))
    except TokenError as error:
        raise SqlError(f"the query cannot be read: {error}", "is a quote left open?") from None
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise SqlError("the query is empty", "write select * from TOPIC, show tables or describe TOPIC")
    if tokens[0].token_type is TokenType.SHOW:
        return _show(tokens)
    if tokens[0].token_type is TokenType.DESCRIBE:
        return _describe(tokens)
    return _query(_tree(tokens, text), clauses)


def _show(tokens: list[Token]) -> ShowTables:
    if " ".join(one.text.lower() for one in tokens[1:]) not in ("tables", "topics", "all tables"):
        raise SqlError(f"SHOW {' '.join(one.text for one in tokens[1:])} is not known", "write SHOW TABLES")
    return ShowTables()


def _describe(tokens: list[Token]) -> DescribeTable:
    names = [one.text for one in tokens[1:] if one.text.lower() != "table" or len(tokens) == 2]
    if not names or any(one.token_type is TokenType.SELECT for one in tokens):
        raise SqlError("DESCRIBE is about one topic", "write DESCRIBE TOPIC")
    return DescribeTable("".join(names))


def _tree(tokens: list[Token], text: str) -> exp.Query:
    try:
        trees = parse_tokens(tokens, text)
    except ParseError as error:
        raise _unread(error) from None
    if len(trees) != 1:
        raise SqlError("these are several statements", "ask one at a time")
    (tree,) = trees
    if not isinstance(tree, exp.Query):
        kind = type(tree).__name__.upper() if tree is not None else "nothing"
        raise SqlError(f"only queries are answered, and this is {kind}", "begin with SELECT, WITH or FROM")
    return tree


def _unread(error: ParseError) -> SqlError:
    first = error.errors[0] if error.errors else {}
    near = f"{first.get('start_context', '')}>>{first.get('highlight', '')}<<{first.get('end_context', '')}"
    what = re.sub(r" but got <Token.*", "", str(first.get("description", error))).rstrip(".")
    return SqlError(
        f"the query cannot be read at line {first.get('line')}, column {first.get('col')}: {what}: {near[-120:]}",
        'names with other characters than letters, digits and _ stand in double quotes: select "my column"',
    )


def _query(tree: exp.Query, clauses: list[AsOf]) -> Query:
    complete_headers(tree)
    refs: list[TopicRef] = []
    for scope in traverse_scope(tree):
        for table in [one for one in scope.sources.values() if isinstance(one, exp.Table)]:
            # A lateral's own scope knows the tables beside it too.
            if isinstance(table.this, exp.Identifier | exp.Dot) and table.find_ancestor(exp.Select) is scope.expression:
                refs.append(_ref(table, scope, f"{VIEW}{len(refs)}", clauses))
    query = Query(tree, refs, frozenset(one.name.lower() for one in tree.find_all(exp.Identifier)))
    _mark_stars(query)
    return query


def _ref(table: exp.Table, scope: Scope, view: str, clauses: list[AsOf]) -> TopicRef:
    parts = [split_mark(part.name) for part in table.parts]
    alias, number = split_mark(table.alias)
    numbers = [one for _, one in parts if one is not None] + ([number] if number is not None else [])
    topic = ".".join(name for name, _ in parts)
    called = alias or parts[-1][0]
    table.set("this", exp.to_identifier(view))
    table.set("db", None)
    table.set("catalog", None)
    kept = table.args.get("alias")
    columns = kept.args.get("columns") if kept is not None else None
    table.set("alias", exp.TableAlias(this=exp.to_identifier(called, quoted=True), columns=columns))
    return TopicRef(topic, view, called, clauses[numbers[0]] if numbers else None, scope)


def _mark_stars(query: Query) -> None:
    """Which topics are used with all their columns; count(*) does not count."""
    tree = query.tree
    natural = any(str(join.args.get("method", "")).upper() == "NATURAL" for join in tree.find_all(exp.Join))
    hidden = natural or any(tree.find(kind) is not None for kind in EVERYTHING_USED)
    whole = {one.name.lower() for one in tree.find_all(exp.Column) if not one.table}
    for ref in query.refs:
        ref.star = hidden or ref.alias.lower() in whole or _has_renamed_columns(ref) or _selects_all(ref)


def _has_renamed_columns(ref: TopicRef) -> bool:
    """`FROM orders o(a, b)`: columns are named by their place."""
    table = ref.scope.sources.get(ref.alias)
    alias = table.args.get("alias") if isinstance(table, exp.Table) else None
    return bool(alias is not None and alias.args.get("columns"))


def _selects_all(ref: TopicRef) -> bool:
    for star in ref.scope.expression.find_all(exp.Star):
        if isinstance(star.parent, exp.Count) or star.find_ancestor(exp.Query) is not ref.scope.expression:
            continue
        column = star.parent
        if not isinstance(column, exp.Column) or column.table.lower() == ref.alias.lower():
            return True
    return False
