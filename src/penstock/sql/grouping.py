"""A grouping query taken apart: what each batch gives, how two parts make one, and what is told of the whole. Pure.

`SELECT k, avg(x) FROM t GROUP BY k` is, of a batch, `SELECT k AS k0, sum(x) AS a0, count(x) AS a1 ... GROUP BY k`; two
rows of a group are merged by the sums of a0 and of a1; and `SELECT k0, a0 / a1` is what is told.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from penstock.sql.errors import SqlError

MERGED_BY: dict[type[exp.Expr], str] = {exp.Sum: "sum", exp.Count: "sum", exp.Min: "min", exp.Max: "max"}
SUPPORTED = "sum, count, min, max and avg, with FILTER or without"


@dataclass
class Grouped:
    partial: exp.Select
    """over the batch's view: columns k0..., a0..."""
    final: exp.Select
    """over the table `changed`, which has the same columns"""
    keys: list[str]
    merges: dict[str, str]
    """the function that makes one of several parts, by column"""


@dataclass
class _Parts:
    columns: dict[str, exp.Expr] = field(default_factory=dict)
    merges: dict[str, str] = field(default_factory=dict)
    seen: list[tuple[exp.Expr, exp.Expr]] = field(default_factory=list)
    """an aggregate and what stands for it"""

    def add(self, expression: exp.Expr, by: str) -> exp.Column:
        name = f"a{len(self.columns)}"
        self.columns[name] = expression
        self.merges[name] = by
        return exp.column(name)


def grouped(tree: exp.Query) -> Grouped:
    assert isinstance(tree, exp.Select)
    keys = [one.copy() for one in _keys(tree)]
    parts = _Parts()
    told = [_told(one, keys, parts) for one in tree.expressions]
    having = tree.args.get("having")
    condition = _replaced(having.this, keys, parts) if having is not None else None
    names = [f"k{at}" for at in range(len(keys))]
    partial = exp.select(
        *(exp.alias_(key, name) for key, name in zip(keys, names, strict=True)),
        *(exp.alias_(one, name) for name, one in parts.columns.items()),
    ).from_(tree.args["from_"].this.copy())
    where = tree.args.get("where")
    if where is not None:
        partial = partial.where(where.this.copy())
    if keys:
        partial = partial.group_by(*(exp.Literal.number(at + 1) for at in range(len(keys))))
    final = exp.select(*told).from_("changed")
    return Grouped(partial, final.where(condition) if condition is not None else final, names, parts.merges)


def _keys(tree: exp.Select) -> list[exp.Expr]:
    group = tree.args.get("group")
    if group is None:
        return []
    if any(group.args.get(one) for one in ("rollup", "cube", "grouping_sets")):
        raise SqlError("ROLLUP, CUBE and GROUPING SETS have no continuous result on DuckDB", "group by columns")
    if group.args.get("all"):
        return [one.unalias() for one in tree.expressions if one.find(exp.AggFunc) is None]
    return [_key(tree, one) for one in group.expressions]


def _key(tree: exp.Select, one: exp.Expr) -> exp.Expr:
    """What a place in the list, or the name of a column of the result, stands for."""
    if isinstance(one, exp.Literal) and not one.is_string:
        found: exp.Expr = tree.expressions[int(one.this) - 1]
        return found.unalias()
    if isinstance(one, exp.Column) and not one.table:
        for selected in tree.expressions:
            if isinstance(selected, exp.Alias) and selected.alias.lower() == one.name.lower():
                return selected.unalias()
    return one


def _told(selected: exp.Expr, keys: list[exp.Expr], parts: _Parts) -> exp.Expr:
    """Under the name that it has in the query."""
    name = selected.alias_or_name or selected.sql("duckdb")
    return exp.alias_(_replaced(selected.unalias(), keys, parts), name, quoted=True)


def _replaced(expression: exp.Expr, keys: list[exp.Expr], parts: _Parts) -> exp.Expr:
    for at, key in enumerate(keys):
        if expression == key:
            return exp.column(f"k{at}")
    if isinstance(expression, exp.AggFunc) or (isinstance(expression, exp.Filter) and expression.find(exp.AggFunc)):
        return _aggregate(expression, parts)
    copy = expression.copy()
    for child in list(copy.iter_expressions()):
        child.replace(_replaced(child, keys, parts))
    return copy


def _aggregate(expression: exp.Expr, parts: _Parts) -> exp.Expr:
    for known, stands in parts.seen:
        if known == expression:
            return stands.copy()
    made = _decomposed(expression, parts)
    parts.seen.append((expression.copy(), made))
    return made.copy()


def _decomposed(expression: exp.Expr, parts: _Parts) -> exp.Expr:
    inner = expression.this if isinstance(expression, exp.Filter) else expression
    if isinstance(inner, exp.Avg):
        total = parts.add(_with(expression, exp.Sum(this=inner.this.copy())), "sum")
        count = parts.add(_with(expression, exp.Count(this=inner.this.copy())), "sum")
        return exp.paren(exp.Div(this=total, expression=count))
    by = MERGED_BY.get(type(inner))
    if by is None or inner.expressions or inner.find(exp.Distinct) is not None:
        raise SqlError(
            f"{inner.sql('duckdb')} has no continuous result on DuckDB: parts of it cannot be merged",
            f"supported are {SUPPORTED}; --engine spark --stream knows more",
        )
    return parts.add(expression.copy(), by)


def _with(expression: exp.Expr, inner: exp.Expr) -> exp.Expr:
    """The same FILTER around another aggregate."""
    if not isinstance(expression, exp.Filter):
        return inner
    return exp.Filter(this=inner, expression=expression.expression.copy())
