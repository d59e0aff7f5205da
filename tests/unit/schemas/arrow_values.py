"""Arrow types and values of them, at random, for the tests of formats."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))

SCALARS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=False, allow_infinity=False),
    pa.string(): TEXTS,
    pa.binary(): st.binary(max_size=8),
    pa.date32(): st.dates(date(1900, 1, 1), date(2200, 1, 1)),
    pa.timestamp("us", "UTC"): MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC)),
    pa.timestamp("us"): MOMENTS,
    pa.decimal128(12, 3): st.integers(-(10**12) + 1, 10**12 - 1).map(lambda number: Decimal(number).scaleb(-3)),
}
NAMES = ["a", "b", "c", "naïve"]


def types(depth: int = 2) -> st.SearchStrategy[pa.DataType]:
    scalars = st.sampled_from(list(SCALARS))
    if depth == 0:
        return scalars
    inner = types(depth - 1)
    return st.one_of(scalars, structs(depth), inner.map(pa.list_), inner.map(lambda one: pa.map_(pa.string(), one)))


def structs(depth: int = 2) -> st.SearchStrategy[pa.DataType]:
    members = st.dictionaries(
        st.sampled_from(NAMES), st.tuples(types(depth - 1), st.booleans()), min_size=1, max_size=4
    )
    return members.map(lambda found: pa.struct([pa.field(name, *one) for name, one in found.items()]))


def values(kind: pa.DataType, nullable: bool = True) -> st.SearchStrategy[Any]:
    found = _values(kind)
    return st.none() | found if nullable else found


def _values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({one.name: values(one.type, one.nullable) for one in kind})
    if pa.types.is_map(kind):
        items = values(kind.item_type, kind.item_field.nullable)
        return st.dictionaries(TEXTS, items, max_size=3).map(lambda found: list(found.items()))
    if pa.types.is_list(kind):
        return st.lists(values(kind.value_type, kind.value_field.nullable), max_size=3)
    return SCALARS[kind]


@st.composite
def columns(draw: st.DrawFn, kinds: st.SearchStrategy[pa.DataType] | None = None) -> pa.Array:
    """A column of a random type."""
    kind = draw(kinds if kinds is not None else structs())
    return pa.array(draw(st.lists(values(kind), max_size=6)), kind)
