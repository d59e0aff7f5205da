"""What of a topic a query can need at all, told by its WHERE: partitions, offsets, and from which time on. Pure.

A conjunct `column op constant` of the SELECT that names the topic is looked at; it holds for no row whose column is
null, so it may be applied before any kind of join. Upper bounds of a time narrow nothing: a later record may be older.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from penstock.sql.statement import TopicRef

FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE}
COMPARISONS = (exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
CONSTANTS = (
    exp.Literal,
    exp.Neg,
    exp.Cast,
    exp.DataType,
    exp.Interval,
    exp.Var,
    exp.Paren,
    exp.Add,
    exp.Sub,
    exp.CurrentTimestamp,
    exp.CurrentDate,
)
"""What a constant may be made of: nothing that is another value each time, other than a later now."""
NOW = ("now", "get_current_timestamp")

TimeOf = Callable[[exp.Expr], int | None]
"""A constant expression's time in ms since 1970, rounded down."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Some whole numbers: those from `low` to `high`, if `among` is given only those of them."""

    low: int | None = None
    high: int | None = None
    among: frozenset[int] | None = None

    def both(self, other: Numbers) -> Numbers:
        """What is in this and in the other."""
        lows = [one for one in (self.low, other.low) if one is not None]
        highs = [one for one in (self.high, other.high) if one is not None]
        sets = [one for one in (self.among, other.among) if one is not None]
        among = frozenset.intersection(*sets) if sets else None
        return Numbers(max(lows, default=None), min(highs, default=None), among)

    def has(self, number: int) -> bool:
        return (
            (self.low is None or number >= self.low)
            and (self.high is None or number <= self.high)
            and (self.among is None or number in self.among)
        )

    def clip(self, start: int, end: int) -> tuple[int, int]:
        """The part of [start, end) that all these numbers lie in."""
        lows = [self.low, min(self.among) if self.among else None]
        highs = [self.high, max(self.among) if self.among else None]
        start = max([start, *(one for one in lows if one is not None)])
        end = min([end, *(one + 1 for one in highs if one is not None)])
        return (start, start) if self.among == frozenset() or end < start else (start, end)


@dataclass(frozen=True, slots=True)
class Narrowing:
    partitions: Numbers = Numbers()
    offsets: Numbers = Numbers()
    first_time_ms: int | None = None

    def at_least(self, timestamp_ms: int) -> Narrowing:
        known = self.first_time_ms
        return replace(self, first_time_ms=timestamp_ms if known is None else max(known, timestamp_ms))


def narrowing_of(ref: TopicRef, time_of: TimeOf) -> Narrowing:
    found = Narrowing()
    select = ref.scope.expression
    where = select.args.get("where")
    if where is None:
        return found
    alone = not select.args.get("joins") and not select.args.get("laterals") and len(ref.scope.sources) == 1
    for conjunct in _conjuncts(where.this):
        column = _column(conjunct)
        if column is None or not _is_of(column, ref, alone):
            continue
        name = column.name.lower()
        if name == "partition":
            found = replace(found, partitions=found.partitions.both(_numbers(conjunct)))
        elif name == "offset":
            found = replace(found, offsets=found.offsets.both(_numbers(conjunct)))
        elif name == "timestamp":
            time_ms = _first_time(conjunct, time_of)
            found = found if time_ms is None else found.at_least(time_ms)
    return found


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(condition, exp.Paren):
        yield from _conjuncts(condition.this)
    elif isinstance(condition, exp.And):
        yield from _conjuncts(condition.left)
        yield from _conjuncts(condition.right)
    else:
        yield _turned(condition)


def _turned(condition: exp.Expr) -> exp.Expr:
    """`5 < offset` as `offset > 5`."""
    if isinstance(condition, COMPARISONS) and isinstance(condition.right, exp.Column):
        kind = FLIPPED.get(type(condition), type(condition))
        return kind(this=condition.right, expression=condition.left)
    return condition


def _column(condition: exp.Expr) -> exp.Column | None:
    if isinstance(condition, (*COMPARISONS, exp.Between, exp.In)) and isinstance(condition.this, exp.Column):
        return condition.this
    return None


def _is_of(column: exp.Column, ref: TopicRef, alone: bool) -> bool:
    return column.table.lower() == ref.alias.lower() if column.table else alone


def _numbers(condition: exp.Expr) -> Numbers:
    if isinstance(condition, exp.In):
        values = [_whole(one) for one in condition.expressions]
        known = [one for one in values if one is not None]
        return Numbers(among=frozenset(known)) if known and len(known) == len(values) else Numbers()
    if isinstance(condition, exp.Between):
        if condition.args.get("symmetric"):
            return Numbers()
        return Numbers(_whole(condition.args["low"]), _whole(condition.args["high"]))
    value = _whole(condition.expression)
    if value is None:
        return Numbers()
    by_kind: dict[type[exp.Expr], Numbers] = {
        exp.EQ: Numbers(value, value),
        exp.LT: Numbers(high=value - 1),
        exp.LTE: Numbers(high=value),
        exp.GT: Numbers(low=value + 1),
        exp.GTE: Numbers(low=value),
    }
    return by_kind[type(condition)]


def _whole(value: exp.Expr) -> int | None:
    inner, sign = (value.this, -1) if isinstance(value, exp.Neg) else (value, 1)
    if isinstance(inner, exp.Literal) and not inner.is_string and str(inner.this).isdigit():
        return sign * int(inner.this)
    return None


def _first_time(condition: exp.Expr, time_of: TimeOf) -> int | None:
    if isinstance(condition, exp.EQ | exp.GT | exp.GTE):
        return _time(condition.expression, time_of)
    if isinstance(condition, exp.Between) and not condition.args.get("symmetric"):
        return _time(condition.args["low"], time_of)
    if isinstance(condition, exp.In) and condition.expressions:
        return _earliest(_time(one, time_of) for one in condition.expressions)
    return None


def _earliest(times: Iterable[int | None]) -> int | None:
    known = list(times)
    return None if any(one is None for one in known) else min(one for one in known if one is not None)


def _time(value: exp.Expr, time_of: TimeOf) -> int | None:
    return time_of(value) if all(_is_constant(one) for one in value.walk()) else None


def _is_constant(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in NOW and not node.expressions
    return isinstance(node, CONSTANTS)
