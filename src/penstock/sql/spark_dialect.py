"""A query written out for Spark, so that it gives DuckDB's answer. Pure.

sqlglot translates names; what a function of one name counts, rounds or leaves out is seen to here. Where Spark has
nothing that gives the same answer, the query is refused: another answer without a word would be worse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sqlglot import exp, parse_one

from penstock.sql.dialect import SPARK, divided, header_parts
from penstock.sql.errors import SqlError

WHOLE = (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT)
MONDAY_US = 946_857_600_000_000
"""2000-01-03 00:00 UTC: DuckDB's buckets of time are counted from there."""
UNITS_US = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
PARTS = {
    "DOW": "(dayofweek(_x) - 1)",
    "DAYOFWEEK": "(dayofweek(_x) - 1)",
    "WEEKDAY": "(dayofweek(_x) - 1)",
    "ISODOW": "(weekday(_x) + 1)",
    "EPOCH": "(unix_micros(cast(_x as timestamp)) / 1000000)",
    "SECOND": "cast(floor(extract(second from _x)) as bigint)",
}
"""parts of a time that Spark counts from another day, or with another fraction"""
ONE_HAS = "the engine duckdb can"


@dataclass(frozen=True)
class Names:
    """Names of columns by what is in them, in lower case."""

    lists: frozenset[str] = frozenset()
    times: frozenset[str] = frozenset()


def spark_sql(tree: exp.Expr, lists: Iterable[str] = (), times: Iterable[str] = ()) -> str:
    """`lists` and `times`: columns that are such, where Spark has another function for them."""
    names = Names(frozenset(map(str.lower, lists)), frozenset(map(str.lower, times)))
    return _rewritten(tree.copy(), names).sql(SPARK, identify=True)


def _rewritten(node: exp.Expr, names: Names) -> exp.Expr:
    """From the leaves up: what is put in place of a node is not looked at again."""
    for child in list(node.iter_expressions()):
        fresh = _rewritten(child, names)
        if fresh is not child:
            child.replace(fresh)
    header = header_parts(node)
    if header is not None:
        last = "decode(try_element_at(filter(_x, h -> h.key = _name), -1).value, 'utf-8')"
        return _made(last, _x=header[0], _name=header[1])
    if isinstance(node, exp.Anonymous):
        return _function(node)
    if isinstance(node, exp.Length):
        return _length(node, names)
    if isinstance(node, exp.UnixToTime):
        return _milliseconds(node, names)
    if isinstance(node, exp.ArrayAgg | exp.Filter | exp.Window):
        return _listed(node)
    rule = next((RULES[kind] for kind in type(node).__mro__ if kind in RULES), None)
    return node if rule is None else rule(node)


def _made(template: str, **parts: exp.Expr) -> exp.Expr:
    """The template with parts in place of columns of their names."""
    tree: exp.Expr = parse_one(template, dialect=SPARK)
    for column in list(tree.find_all(exp.Column)):
        part = None if column.table else parts.get(column.name)
        if part is not None:
            column.replace(exp.paren(part) if isinstance(part, exp.Binary) else part.copy())
    return tree


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[one.copy() for one in arguments])


def _refused(what: str, instead: str = ONE_HAS) -> SqlError:
    return SqlError(f"Spark cannot run this query: {what}", instead)


def _function(node: exp.Anonymous) -> exp.Expr:
    name, given = str(node.this).lower(), node.expressions
    if name in ("date_part", "datepart") and len(given) == 2 and isinstance(given[0], exp.Literal):
        return _part(exp.Extract(this=exp.var(given[0].this.upper()), expression=given[1]))
    if name == "weekday":
        return _made(PARTS["DOW"], _x=given[0])
    if name == "epoch_us":
        return _made("unix_micros(cast(_x as timestamp))", _x=given[0])
    if name == "get_current_timestamp":
        return _call("now")
    if name == "hash":
        raise _refused("its hash is another one than DuckDB's", "md5 is the same on both")
    return node


def _part(node: exp.Expr) -> exp.Expr:
    template = PARTS.get(node.this.name.upper())
    return node if template is None else _made(template, _x=node.expression)


def _length(node: exp.Length, names: Names) -> exp.Expr:
    is_list = isinstance(node.this, exp.Column) and node.this.name.lower() in names.lists
    return exp.ArraySize(this=node.this) if is_list else node


def _milliseconds(node: exp.UnixToTime, names: Names) -> exp.Expr:
    """epoch_ms goes both ways in DuckDB: of a time it gives the number."""
    if not any(one.name.lower() in names.times for one in node.this.find_all(exp.Column)):
        return node
    return _made("unix_millis(cast(_x as timestamp))", _x=node.this)


def _cast(node: exp.Expr) -> exp.Expr:
    """DuckDB rounds what becomes a whole number, where Spark cuts it off; a time's text names its zone."""
    word = "try_cast" if isinstance(node, exp.TryCast) else "cast"
    kind, inner = node.args["to"], node.this
    if isinstance(inner, exp.Literal) and (inner.is_string or inner.is_int):
        return node
    if kind.is_type(*WHOLE):
        to = kind.sql(SPARK)
        return _made(
            f"case when typeof(_x) in ('double', 'float') then {word}(rint(cast(_x as double)) as {to}) "
            f"when typeof(_x) like 'decimal%' then {word}(round(cast(_x as double), 0) as {to}) "
            f"else {word}(_x as {to}) end",
            _x=inner,
        )
    if kind.is_type(*exp.DataType.TEXT_TYPES):
        text = "cast(_x as string)"
        return _made(f"case when typeof(_x) = 'timestamp' then concat({text}, '+00') else {text} end", _x=inner)
    return node


def _quotient(node: exp.Expr) -> exp.Expr:
    """DuckDB divides as doubles; Spark keeps six digits where one side is written with a point."""
    divided(node)
    node.set("this", exp.cast(node.this, exp.DType.DOUBLE))
    return node


def _place(node: exp.Expr) -> exp.Expr:
    """One counts from 1 in both, and a place that is not there is null."""
    if len(node.expressions) != 1 or not _is_whole(node.expressions[0]):
        return node
    return exp.func("try_element_at", node.this, _from_one(node), dialect=SPARK)


def _is_whole(index: exp.Expr) -> bool:
    inner = index.this if isinstance(index, exp.Neg) else index
    return isinstance(inner, exp.Literal) and not inner.is_string


def _from_one(node: exp.Expr) -> exp.Expr:
    """The parser keeps indices counted from 0, the negative ones too."""
    place = int(node.expressions[0].sql()) + (1 if node.args.get("offset") is None else int(node.args["offset"]))
    if place == 0:
        return exp.null()
    return exp.Literal.number(place) if place > 0 else exp.Neg(this=exp.Literal.number(-place))


def _logarithm(node: exp.Expr) -> exp.Expr:
    """Of ten in DuckDB, the natural one in Spark, where no base is named; log10(1000) is 3 only by that name."""
    if node.expression is None:
        return _call("log10", node.this)
    known = {"2": "log2", "10": "log10"}.get(node.this.name)
    return node if known is None else _call(known, node.expression)


def _pattern(node: exp.Expr) -> exp.Expr:
    """A backslash is nothing special in DuckDB's patterns, unless ESCAPE says so."""
    pattern = node.expression
    if isinstance(pattern, exp.Literal) and not isinstance(node.parent, exp.Escape):
        node.set("expression", exp.Literal.string(pattern.this.replace("\\", "\\\\")))
    return node


def _replacing(node: exp.Expr) -> exp.Expr:
    modifiers = node.args.get("modifiers")
    flags = str(modifiers.this) if isinstance(modifiers, exp.Literal) else ""
    if "g" not in flags:
        raise _refused(
            "regexp_replace without 'g' replaces the first match, and Spark's replaces all",
            "write regexp_replace(text, pattern, with, 'g'), if all are meant",
        )
    pattern, replacement = node.expression, node.args["replacement"]
    if not isinstance(replacement, exp.Literal) or not set(flags) <= {"g", "i"}:
        raise _refused("of regexp_replace it takes a constant replacement, and the flags g and i")
    if "i" in flags:
        pattern = _made("concat('(?i)', _x)", _x=pattern)
    # A group is \1 here and $1 there.
    text = str(replacement.this).replace("$", "\\$")
    for digit in "0123456789":
        text = text.replace(f"\\{digit}", f"${digit}")
    return _call("regexp_replace", node.this, pattern, exp.Literal.string(text))


def _boundaries(node: exp.Expr) -> exp.Expr:
    """DuckDB counts how many hours begin in between, Spark how many whole ones there are."""
    unit = node.args.get("unit")
    name = "DAY" if unit is None else unit.name.upper()
    ends = [_call("date_trunc", exp.Literal.string(name), one) for one in (node.expression, node.this)]
    return exp.Anonymous(this="timestampdiff", expressions=[exp.var(name), *ends])


def _bucket(node: exp.Expr) -> exp.Expr:
    width = node.this
    unit = width.args.get("unit") if isinstance(width, exp.Interval) else None
    micros = UNITS_US.get(unit.name.upper().removesuffix("S")) if unit is not None else None
    if micros is None or node.args.get("zone") or node.args.get("origin") or not width.this.name.isdigit():
        raise _refused("time_bucket takes an interval of weeks, days, hours, minutes or seconds there")
    us = "unix_micros(cast(_x as timestamp))"
    return _made(
        f"timestamp_micros({us} - pmod({us} - {MONDAY_US}, {int(width.this.name) * micros}))", _x=node.expression
    )


def _quantile(node: exp.Expr) -> exp.Expr:
    """quantile_cont(x, 0.5), quantile_disc(x, 0.5) and quantile(x, 0.5), which is the latter."""
    if isinstance(node.parent, exp.WithinGroup):
        return node
    share = node.args.get("quantile") or node.expression
    if isinstance(node, exp.PercentileCont):
        return _call("percentile", node.this, share)
    return _discrete(share, exp.Ordered(this=node.this.copy()))


def _within(node: exp.Expr) -> exp.Expr:
    """PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x): sqlglot would write one that is near it."""
    inner, order = node.this, node.expression.expressions
    if isinstance(inner, exp.PercentileDisc):
        return _discrete(inner.this, order[0])
    if not isinstance(inner, exp.PercentileCont):
        return node
    share = _made("(1 - _x)", _x=inner.this) if order[0].args.get("desc") else inner.this
    return _call("percentile", order[0].this, share)


def _discrete(share: exp.Expr, order: exp.Expr) -> exp.Expr:
    return exp.WithinGroup(this=_call("percentile_disc", share), expression=exp.Order(expressions=[order.copy()]))


def _listed(node: exp.Expr) -> exp.Expr:
    """A list has its nulls and its order; of no rows it is null. Spark's leaves the first out and ignores the second.

    FILTER and OVER stand around the aggregate, and what is made of its list around them.
    """
    if isinstance(node.parent, exp.Filter | exp.Window) and node.arg_key == "this":
        return node
    core = node
    while isinstance(core, exp.Filter | exp.Window):
        core = core.this
    if not isinstance(core, exp.ArrayAgg):
        return node
    inner = core.this
    order = inner.expressions if isinstance(inner, exp.Order) else []
    value = inner.this if isinstance(inner, exp.Order) else inner
    if isinstance(value, exp.Distinct):
        raise _refused("a list of DISTINCT values has another order there")
    keys = [one.this.copy().as_(f"k{at}") for at, one in enumerate(order)]
    rows = exp.func("collect_list", exp.func("struct", value.copy().as_("v"), *keys))
    collected = rows if core is node else node.copy()
    if core is not node:
        next(collected.find_all(exp.ArrayAgg)).replace(rows)
    found = _made("case when size(_rows) > 0 then _rows end", _rows=collected)
    if order:
        found = _made(f"array_sort(_rows, (l, r) -> {_comparison(order)})", _rows=found)
    return _made("transform(_rows, s -> s.v)", _rows=found)


def _comparison(order: list[exp.Expr]) -> str:
    text = "0"
    for at, one in reversed(list(enumerate(order))):
        less, more = (1, -1) if one.args.get("desc") else (-1, 1)
        null = -1 if one.args.get("nulls_first") else 1
        text = (
            f"case when l.k{at} is null and r.k{at} is null then {text} when l.k{at} is null then {null} "
            f"when r.k{at} is null then {-null} when l.k{at} < r.k{at} then {less} "
            f"when l.k{at} > r.k{at} then {more} else {text} end"
        )
    return text


def _json(node: exp.Expr) -> exp.Expr:
    if isinstance(node.parent, exp.JSONExtract | exp.JSONExtractScalar):
        return node
    raise _refused("-> gives JSON, for which it has no type", "->> gives the text, on both engines")


def _no_format(node: exp.Expr) -> exp.Expr:
    raise _refused("it has no format()", "printf is the same on both")


RULES: dict[type, Callable[[exp.Expr], exp.Expr]] = {
    exp.Div: _quotient,
    exp.Mod: divided,
    exp.IntDiv: divided,
    exp.Bracket: _place,
    exp.Cast: _cast,
    exp.DateBin: _bucket,
    exp.DateDiff: _boundaries,
    exp.DayOfWeek: lambda node: _made(PARTS["DOW"], _x=node.this),
    exp.DayOfWeekIso: lambda node: _made(PARTS["ISODOW"], _x=node.this),
    exp.Dayname: lambda node: _call("date_format", node.this, exp.Literal.string("EEEE")),
    exp.Extract: _part,
    exp.Format: _no_format,
    exp.ILike: _pattern,
    exp.JSONExtract: _json,
    exp.Like: _pattern,
    exp.Log: _logarithm,
    exp.Monthname: lambda node: _call("date_format", node.this, exp.Literal.string("MMMM")),
    exp.PercentileCont: _quantile,
    exp.PercentileDisc: _quantile,
    exp.Quantile: _quantile,
    exp.RegexpReplace: _replacing,
    exp.Week: lambda node: _call("weekofyear", node.this),
    exp.TimeToUnix: lambda node: _made(PARTS["EPOCH"], _x=node.this),
    exp.WithinGroup: _within,
}
"""by the kind of node, whose parts are rewritten already"""
