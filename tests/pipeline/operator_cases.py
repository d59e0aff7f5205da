"""Every operator of the streams DSL on a handful of rows, with what comes out worked out by hand.

Rows are (topic, key, value, time in ms); they arrive in this order. A row at `END` lets every window close. Results
are (key, value, time) in order; a windowed key is (key, start, end). The same cases run on plain rows, as a Spark
stream and as a Spark batch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.pipeline import (
    Context,
    JoinWindows,
    Pipeline,
    Processor,
    SessionWindows,
    SlidingWindows,
    Stream,
    Table,
    TimeWindows,
    UnlimitedWindows,
)

END = 1_000_000


@dataclass
class Case:
    name: str
    build: Callable[[Pipeline], None]
    inputs: list[tuple[str, Any, Any, int]]
    rows: dict[str, list[tuple[Any, Any, int]]]
    """Topic to what a driver of plain rows writes to it, in order."""
    tables: set[str] = field(default_factory=set)
    """Topics that hold a table: Spark may leave out changes in between; the last value of each key is the same."""


@dataclass
class Click:
    user: str
    page: str
    seconds: int


CASES: list[Case] = []


def case(
    inputs: Iterable[tuple[str, Any, Any, int]], rows: dict[str, list[tuple[Any, Any, int]]], tables: str = ""
) -> Callable[[Callable[[Pipeline], None]], Callable[[Pipeline], None]]:
    def take(build: Callable[[Pipeline], None]) -> Callable[[Pipeline], None]:
        CASES.append(Case(build.__name__, build, list(inputs), rows, set(tables.split())))
        return build

    return take


def words(pipeline: Pipeline, topic: str = "in") -> Stream:
    return pipeline.stream(topic, value=str, starting="earliest")


def numbers(pipeline: Pipeline, topic: str = "in") -> Stream:
    return pipeline.stream(topic, value=int, starting="earliest")


def table(pipeline: Pipeline, topic: str) -> Table:
    return pipeline.table(topic, value=str)


THREE = [("in", "a", "one", 1), ("in", "b", "two", 2), ("in", "a", "three", 3)]


@case(THREE, {"out": [("a", "one", 1), ("b", "two", 2)]})
def filter_rows(pipeline: Pipeline) -> None:
    words(pipeline).filter(lambda value: len(value) == 3).to("out")


@case(THREE, {"out": [("b", "two", 2)]})
def filter_not(pipeline: Pipeline) -> None:
    words(pipeline).filter_not(lambda key, value: key == "a").to("out")


@case(THREE, {"out": [("one", "a", 1), ("two", "b", 2), ("three", "a", 3)]})
def map_pairs(pipeline: Pipeline) -> None:
    words(pipeline).map(lambda key, value: (value, key), key=str, to=str).to("out")


@case(THREE, {"out": [("a", 3, 1), ("b", 3, 2), ("a", 5, 3)]})
def map_values(pipeline: Pipeline) -> None:
    words(pipeline).map_values(len, to=int).to("out")


@case(THREE[:2], {"out": [("a", "one", 1), ("o", "one", 1), ("b", "two", 2), ("t", "two", 2)]})
def flat_map(pipeline: Pipeline) -> None:
    words(pipeline).flat_map(lambda key, value: [(key, value), (value[0], value)], key=str, to=str).to("out")


@case([("in", "a", "x y", 1), ("in", "a", "", 2)], {"out": [("a", "x", 1), ("a", "y", 1)]})
def flat_map_values(pipeline: Pipeline) -> None:
    words(pipeline).flat_map_values(lambda value: value.split(), to=str).to("out")


@case(THREE, {"out": [("3", "one", 1), ("3", "two", 2), ("5", "three", 3)]})
def select_key(pipeline: Pipeline) -> None:
    words(pipeline).select_key(lambda value: str(len(value)), key=str).to("out")


@case(THREE, {"short": [("a", "one", 1), ("b", "two", 2)], "long": [("a", "three", 3)], "rest": []})
def branch(pipeline: Pipeline) -> None:
    short, long, rest = words(pipeline).branch(lambda value: len(value) == 3, lambda value: "e" in value)
    short.to("short")
    long.to("long")
    rest.to("rest")


@case([("in", "a", "x", 1), ("more", "b", "y", 2)], {"out": [("a", "x", 1), ("b", "y", 2)]})
def merge(pipeline: Pipeline) -> None:
    words(pipeline).merge(words(pipeline, "more")).to("out")


@case(THREE, {"out": [("a", "one", 1), ("b", "two", 2), ("a", "three", 3)]})
def peek_and_repartition(pipeline: Pipeline) -> None:
    words(pipeline).peek(lambda value: None).repartition().to("out")


@case(THREE, {"to-a": [("a", "one", 1), ("a", "three", 3)], "to-b": [("b", "two", 2)]})
def to_topics_by_row(pipeline: Pipeline) -> None:
    words(pipeline).to(lambda key, value: f"to-{key}")


COUNTED = [
    ("in", "a", "x", 1),
    ("in", "b", "y", 2),
    ("in", "a", "z", 3),
    ("in", None, "no key", 4),
    ("in", "a", None, 5),
]


@case(COUNTED, {"out": [("a", 1, 1), ("b", 1, 2), ("a", 2, 3)]}, tables="out")
def count(pipeline: Pipeline) -> None:
    words(pipeline).group_by_key().count().to("out")


@case(
    [("in", "a", "x", 1), ("in", "b", "x", 2), ("in", "c", "y", 3)],
    {"out": [("x", 1, 1), ("x", 2, 2), ("y", 1, 3)]},
    tables="out",
)
def group_by_and_count(pipeline: Pipeline) -> None:
    words(pipeline).group_by(lambda value: value, key=str).count().to("out")


@case(
    [("in", "a", 5, 10), ("in", "a", 3, 4), ("in", "b", 1, 11), ("in", "a", 9, 12)],
    {"out": [("a", 5, 10), ("a", 3, 10), ("b", 1, 11), ("a", 3, 12)]},
    tables="out",
)
def reduce_to_the_least(pipeline: Pipeline) -> None:
    numbers(pipeline).group_by_key().reduce(min).to("out")


@case(
    [("in", "a", 5, 1), ("in", "b", 1, 2), ("in", "a", 6, 3)],
    {"out": [("a", 105, 1), ("b", 101, 2), ("a", 111, 3)]},
    tables="out",
)
def aggregate(pipeline: Pipeline) -> None:
    numbers(pipeline).group_by_key().aggregate(lambda: 100, lambda total, value: total + value, to=int).to("out")


@case(
    [("in", "a", "x", 1), ("more", "a", 4, 2), ("in", "a", "y", 3), ("more", "b", 6, 4)],
    {"out": [("a", 1, 1), ("a", 5, 2), ("a", 6, 3), ("b", 6, 4)]},
    tables="out",
)
def cogroup(pipeline: Pipeline) -> None:
    left = words(pipeline).group_by_key()
    right = numbers(pipeline, "more").group_by_key()
    left.cogroup(lambda total, value: total + 1).cogroup(right, lambda total, value: total + value).aggregate(
        lambda: 0, to=int
    ).to("out")


TIMES = [("in", "a", "x", 1), ("in", "a", "y", 9), ("in", "a", "z", 12), ("in", "b", "x", 13), ("in", "a", "late", 8)]


@case(
    [*TIMES, ("in", "end", "e", END)],
    {
        "out": [
            (("a", 0, 10), 1, 1),
            (("a", 0, 10), 2, 9),
            (("a", 10, 20), 1, 12),
            (("b", 10, 20), 1, 13),
            (("end", END, END + 10), 1, END),
        ]
    },
    tables="out",
)
def tumbling_windows_leave_out_what_is_late(pipeline: Pipeline) -> None:
    words(pipeline).group_by_key().windowed_by(TimeWindows.of(10)).count().to("out")


@case(
    [*TIMES, ("in", "end", "e", END)],
    {
        "out": [
            (("a", 0, 10), 1, 1),
            (("a", 0, 10), 2, 9),
            (("a", 10, 20), 1, 12),
            (("b", 10, 20), 1, 13),
            (("a", 0, 10), 3, 9),
            (("end", END, END + 10), 1, END),
        ]
    },
    tables="out",
)
def tumbling_windows_with_grace(pipeline: Pipeline) -> None:
    words(pipeline).group_by_key().windowed_by(TimeWindows.of(10, grace=5)).count().to("out")


@case(
    [("in", "a", "x", 3), ("in", "a", "y", 7), ("in", "end", "e", END)],
    {
        "out": [
            (("a", 0, 10), 1, 3),
            (("a", 0, 10), 2, 7),
            (("a", 5, 15), 1, 7),
            (("end", END - 5, END + 5), 1, END),
            (("end", END, END + 10), 1, END),
        ]
    },
    tables="out",
)
def hopping_windows(pipeline: Pipeline) -> None:
    words(pipeline).group_by_key().windowed_by(TimeWindows.of(10, advance=5)).count().to("out")


@case(
    [*TIMES, ("in", "end", "e", END)],
    {"out": [(("a", 0, 10), 3, 9), (("a", 10, 20), 1, 12), (("b", 10, 20), 1, 13)]},
    tables="out",
)
def windows_that_speak_when_they_close(pipeline: Pipeline) -> None:
    words(pipeline).group_by_key().windowed_by(TimeWindows.of(10, grace=5), on_close=True).count().to("out")


@case(
    [*TIMES, ("in", "end", "e", END)],
    {"out": [(("a", 0, 10), 3, 9), (("a", 10, 20), 1, 12), (("b", 10, 20), 1, 13)]},
    tables="out",
)
def suppress_until_the_window_closes(pipeline: Pipeline) -> None:
    counts = words(pipeline).group_by_key().windowed_by(TimeWindows.of(10, grace=5)).count()
    counts.suppress(until_window_closes=True).to("out")


@case(
    [("in", "a", "x", 1), ("in", "a", "y", 5), ("in", "b", "z", 20), ("in", "end", "e", END)],
    {"out": [("a", 2, 5), ("b", 1, 20)]},
    tables="out",
)
def suppress_for_a_time(pipeline: Pipeline) -> None:
    words(pipeline).group_by_key().count().suppress(for_=10).to("out")


@case(
    [("in", "a", "x", 1), ("in", "a", "y", 500)],
    {"out": [(("a", 0, 2**63 - 1), 1, 1), (("a", 0, 2**63 - 1), 2, 500)]},
    tables="out",
)
def unlimited_windows(pipeline: Pipeline) -> None:
    words(pipeline).group_by_key().windowed_by(UnlimitedWindows()).count().to("out")


@case(
    [("in", "a", 1, 100), ("in", "a", 2, 104), ("in", "a", 4, 112), ("in", "end", 0, END)],
    {
        # 104 comes: the window that ends with it holds both; the one that begins after 100 holds it alone.
        # 112 comes: the one that ends with it begins at 102 and holds 104 too; the one after 104 holds it alone.
        "out": [
            (("a", 90, 100), 1, 100),
            (("a", 94, 104), 3, 104),
            (("a", 101, 111), 2, 104),
            (("a", 102, 112), 6, 112),
            (("a", 105, 115), 4, 112),
            (("end", END - 10, END), 0, END),
        ]
    },
    tables="out",
)
def sliding_windows(pipeline: Pipeline) -> None:
    windows = SlidingWindows.of(10, grace=100)
    numbers(pipeline).group_by_key().windowed_by(windows).aggregate(int, lambda total, value: total + value).to("out")


@case(
    [("in", "a", "x", 10), ("in", "a", "y", 30), ("in", "a", "z", 20), ("in", "b", "x", 22), ("in", "end", "e", END)],
    {
        # The row at 20 is within ten of both sessions: they become one.
        "out": [
            (("a", 10, 10), 1, 10),
            (("a", 30, 30), 1, 30),
            (("a", 10, 10), None, 10),
            (("a", 30, 30), None, 30),
            (("a", 10, 30), 3, 30),
            (("b", 22, 22), 1, 22),
            (("end", END, END), 1, END),
        ]
    },
    tables="out",
)
def session_windows(pipeline: Pipeline) -> None:
    words(pipeline).group_by_key().windowed_by(SessionWindows.of(10, grace=50)).count().to("out")


@case(
    [("in", "a", 3, 10), ("in", "a", 7, 30), ("in", "a", 5, 20), ("in", "end", 0, END)],
    {
        "most": [
            (("a", 10, 10), 3, 10),
            (("a", 30, 30), 7, 30),
            (("a", 10, 10), None, 10),
            (("a", 30, 30), None, 30),
            (("a", 10, 30), 7, 30),
            (("end", END, END), 0, END),
        ],
        "sum": [(("a", 10, 30), 15, 30)],
    },
    tables="most sum",
)
def session_windows_reduced_and_aggregated(pipeline: Pipeline) -> None:
    sessions = numbers(pipeline).group_by_key()
    sessions.windowed_by(SessionWindows.of(10, grace=50)).reduce(max).to("most")
    closed = sessions.windowed_by(SessionWindows.of(10, grace=50), on_close=True)
    closed.aggregate(int, operator.add, merge=operator.add).to("sum")


@case(
    [("in", "a", "x", 1), ("more", "a", 4, 2), ("more", "a", 5, 12), ("in", "end", "e", END), ("more", "end", 0, END)],
    {"out": [(("a", 0, 10), 5, 2), (("a", 10, 20), 5, 12)]},
    tables="out",
)
def cogroup_in_windows(pipeline: Pipeline) -> None:
    both_streams = words(pipeline).group_by_key().cogroup(lambda total, value: total + 1)
    both_streams = both_streams.cogroup(numbers(pipeline, "more").group_by_key(), operator.add)
    both_streams.windowed_by(TimeWindows.of(10), on_close=True).aggregate(int).to("out")


@case(
    [("in", "a", "x", 10), ("in", "a", "y", 18), ("in", "a", "z", 50), ("in", "end", "e", END)],
    {"out": [(("a", 10, 18), 2, 18), (("a", 50, 50), 1, 50)]},
    tables="out",
)
def session_windows_until_they_close(pipeline: Pipeline) -> None:
    words(pipeline).group_by_key().windowed_by(SessionWindows.of(10), on_close=True).count().to("out")


JOINED = [
    ("left", "a", "L1", 10),
    ("right", "a", "R1", 12),
    ("left", "b", "L2", 20),
    ("right", "a", "R2", 30),
    ("left", "a", "L3", 33),
    ("right", "c", "R3", 34),
    ("left", "end", "e", END),
    ("right", "end", "e", END),
]


def both(left: Any, right: Any) -> str:
    return f"{left}+{right}"


@case(JOINED, {"out": [("a", "L1+R1", 12), ("a", "L3+R2", 33), ("end", "e+e", END)]})
def stream_join(pipeline: Pipeline) -> None:
    words(pipeline, "left").join(words(pipeline, "right"), both, JoinWindows.of(5)).to("out")


@case(
    JOINED,
    {"out": [("a", "L1+R1", 12), ("b", "L2+None", 20), ("a", "L3+R2", 33), ("end", "e+e", END)]},
)
def stream_left_join(pipeline: Pipeline) -> None:
    words(pipeline, "left").left_join(words(pipeline, "right"), both, JoinWindows.of(5)).to("out")


@case(
    JOINED,
    {
        "out": [
            ("a", "L1+R1", 12),
            ("b", "L2+None", 20),
            ("a", "L3+R2", 33),
            ("c", "None+R3", 34),
            ("end", "e+e", END),
        ]
    },
)
def stream_outer_join(pipeline: Pipeline) -> None:
    words(pipeline, "left").outer_join(words(pipeline, "right"), both, JoinWindows.of(5)).to("out")


LOOKED_UP = [
    ("users", "a", "Anna", 1),
    ("in", "a", "x", 2),
    ("in", "b", "y", 3),
    ("users", "a", "Ann", 4),
    ("in", "a", "z", 5),
    ("users", "a", None, 6),
    ("in", "a", "gone", 7),
]


@case(LOOKED_UP, {"out": [("a", "x+Anna", 2), ("a", "z+Ann", 5)]})
def stream_table_join(pipeline: Pipeline) -> None:
    words(pipeline).join(table(pipeline, "users"), both).to("out")


@case(
    LOOKED_UP,
    {"out": [("a", "x+Anna", 2), ("b", "y+None", 3), ("a", "z+Ann", 5), ("a", "gone+None", 7)]},
)
def stream_table_left_join(pipeline: Pipeline) -> None:
    words(pipeline).left_join(table(pipeline, "users"), both).to("out")


@case(
    [("users", "a", "Anna", 1), ("in", "1", "a", 2), ("in", "2", "b", 3)],
    {"inner": [("1", "a+Anna", 2)], "left": [("1", "a+Anna", 2), ("2", "b+None", 3)]},
)
def stream_global_table_join(pipeline: Pipeline) -> None:
    users = pipeline.global_table("users", value=str)
    stream = words(pipeline)
    stream.join(users, both, key=lambda value: value).to("inner")
    stream.left_join(users, both, key=lambda value: value).to("left")


@case(
    [("users", "a", "Anna", 1), ("in", "1", None, 2), ("in", "2", "a", 3), ("in", None, "a", 4)],
    {"inner": [("2", "a+Anna", 3), (None, "a+Anna", 4)], "left": [("2", "a+Anna", 3), (None, "a+Anna", 4)]},
)
def a_row_without_a_value_asks_a_global_table_for_nothing(pipeline: Pipeline) -> None:
    users = pipeline.global_table("users", value=str)
    stream = words(pipeline)
    stream.join(users, both, key=lambda value: value.lower()).to("inner")
    stream.left_join(users, both, key=lambda value: value.lower()).to("left")


TABLES = [
    ("left", "a", "L1", 1),
    ("right", "a", "R1", 2),
    ("right", "b", "R2", 3),
    ("left", "a", "L2", 4),
    ("right", "a", None, 5),
    ("left", "a", None, 6),
]


@case(TABLES, {"out": [("a", "L1+R1", 2), ("a", "L2+R1", 4), ("a", None, 5)]}, tables="out")
def table_join(pipeline: Pipeline) -> None:
    table(pipeline, "left").join(table(pipeline, "right"), both).to("out")


@case(
    TABLES,
    {"out": [("a", "L1+None", 1), ("a", "L1+R1", 2), ("a", "L2+R1", 4), ("a", "L2+None", 5), ("a", None, 6)]},
    tables="out",
)
def table_left_join(pipeline: Pipeline) -> None:
    table(pipeline, "left").left_join(table(pipeline, "right"), both).to("out")


@case(
    TABLES,
    {
        "out": [
            ("a", "L1+None", 1),
            ("a", "L1+R1", 2),
            ("b", "None+R2", 3),
            ("a", "L2+R1", 4),
            ("a", "L2+None", 5),
            ("a", None, 6),
        ]
    },
    tables="out",
)
def table_outer_join(pipeline: Pipeline) -> None:
    table(pipeline, "left").outer_join(table(pipeline, "right"), both).to("out")


FOREIGN = [
    ("users", "u1", "Anna", 1),
    ("orders", "o1", "u1", 2),
    ("orders", "o2", "u2", 3),
    ("users", "u2", "Bert", 4),
    ("users", "u1", "Ann", 5),
    ("orders", "o1", "u2", 6),
    ("users", "u2", None, 7),
    ("orders", "o2", None, 8),
]


@case(
    FOREIGN,
    {
        "out": [
            ("o1", "u1+Anna", 2),
            ("o2", "u2+Bert", 4),
            ("o1", "u1+Ann", 5),
            ("o1", "u2+Bert", 6),
            ("o1", None, 7),
            ("o2", None, 7),
        ]
    },
    tables="out",
)
def foreign_key_join(pipeline: Pipeline) -> None:
    table(pipeline, "orders").join(table(pipeline, "users"), both, foreign_key=lambda value: value).to("out")


@case(
    FOREIGN,
    {
        "out": [
            ("o1", "u1+Anna", 2),
            ("o2", "u2+None", 3),
            ("o2", "u2+Bert", 4),
            ("o1", "u1+Ann", 5),
            ("o1", "u2+Bert", 6),
            ("o1", "u2+None", 7),
            ("o2", "u2+None", 7),
            ("o2", None, 8),
        ]
    },
    tables="out",
)
def foreign_key_left_join(pipeline: Pipeline) -> None:
    table(pipeline, "orders").left_join(table(pipeline, "users"), both, foreign_key=lambda value: value).to("out")


@dataclass
class Label:
    of: str
    text: str


@case(
    [("users", "u", "Anna", 1), ("in", "a", "u", 2), ("in", "a", "v", 3), ("in", "a", "u", 4)],
    {"out": [("a", "text", 2), ("a", None, 3), ("a", "text", 4)]},
    tables="out",
)
def foreign_key_join_of_values_that_are_copied_on_their_way(pipeline: Pipeline) -> None:
    """A label's text is the name of its field: one and the same object here, two in a copy of it."""
    labels = words(pipeline).group_by_key().aggregate(lambda: None, lambda _, value: Label(value, "text"))
    labels.join(
        table(pipeline, "users"), lambda label, user: label.text, foreign_key=lambda label: label.of, to=str
    ).to("out")


CITIES = [("in", "anna", "Bonn", 1), ("in", "bert", "Bonn", 2), ("in", "anna", "Köln", 3), ("in", "bert", None, 4)]


@case(
    CITIES,
    {"out": [("Bonn", 1, 1), ("Bonn", 2, 2), ("Bonn", 1, 3), ("Köln", 1, 3), ("Bonn", 0, 4)]},
    tables="out",
)
def grouped_table_count(pipeline: Pipeline) -> None:
    table(pipeline, "in").group_by(lambda key, value: (value, key), key=str).count().to("out")


@case(
    [("in", "a", 5, 1), ("in", "b", 7, 2), ("in", "a", 6, 3), ("in", "b", None, 4)],
    {"out": [("all", 5, 1), ("all", 12, 2), ("all", 13, 3), ("all", 6, 4)]},
    tables="out",
)
def grouped_table_reduce(pipeline: Pipeline) -> None:
    grouped = pipeline.table("in", value=int).group_by(lambda key, value: ("all", value), key=str, value=int)
    grouped.reduce(lambda total, new: total + new, lambda total, old: total - old).to("out")


@case(
    CITIES,
    {"out": [("Bonn", "anna", 1), ("Bonn", "anna bert", 2), ("Bonn", "bert", 3), ("Köln", "anna", 3), ("Bonn", "", 4)]},
    tables="out",
)
def grouped_table_aggregate(pipeline: Pipeline) -> None:
    def add(names: str, name: str) -> str:
        return f"{names} {name}".strip()

    def subtract(names: str, name: str) -> str:
        return " ".join(one for one in names.split() if one != name)

    table(pipeline, "in").group_by(lambda key, value: (value, key), key=str).aggregate(str, add, subtract).to("out")


@case(
    [("in", "a", "keep 1", 1), ("in", "a", "drop", 2), ("in", "b", "keep 2", 3), ("in", "b", None, 4)],
    {"out": [("a", "KEEP 1", 1), ("a", None, 2), ("b", "KEEP 2", 3), ("b", None, 4)]},
    tables="out",
)
def table_filter_and_map_values(pipeline: Pipeline) -> None:
    kept = table(pipeline, "in").filter(lambda value: value.startswith("keep"))
    kept.map_values(lambda value: value.upper(), to=str).to("out")


@case(
    [("in", "a", "x", 1), ("in", "b", "y", 2), ("in", "a", None, 3)],
    {"out": [("a", "x", 1), ("b", "y", 2), ("a", None, 3)]},
    tables="out",
)
def to_table_and_back(pipeline: Pipeline) -> None:
    words(pipeline).to_table().to_stream().to("out")


class Reminder(Processor):
    """Says so when a key has been quiet for ten, with the number of its rows."""

    def process(self, key: Any, value: Any, context: Context) -> None:
        count, due = context.state or (0, None)
        if due is not None:
            context.clear_timer(due)
        context.state = (count + 1, context.timestamp + 10)
        context.set_timer(context.timestamp + 10)

    def on_timer(self, at: int, context: Context) -> None:
        count, _ = context.state
        context.state = None
        context.forward(f"quiet after {count}")


@case(
    [("in", "a", "x", 1), ("in", "a", "y", 5), ("in", "b", "z", 7), ("in", "end", "e", END)],
    {"out": [("a", "quiet after 2", 15), ("b", "quiet after 1", 17)]},
)
def process_with_state_and_timers(pipeline: Pipeline) -> None:
    words(pipeline).process(Reminder, to=str).to("out")


class Numbered(Processor):
    """The rows of each key, counted."""

    def process(self, key: Any, value: Any, context: Context) -> None:
        context.state = (context.state or 0) + 1
        context.forward(f"{value} {context.state}")


@case(
    [("in", None, "x", 1), ("in", "a", None, 2), ("in", None, "y", 3)],
    {"out": [(None, "x 1", 1), ("a", "None 1", 2), (None, "y 2", 3)]},
)
def process_takes_rows_without_a_key_or_a_value(pipeline: Pipeline) -> None:
    words(pipeline).process(Numbered, to=str).to("out")


@case(
    [
        ("in", "a", '{"user":"a","page":"home","seconds":30}', 1),
        ("in", "a", None, 40),
        ("in", "b", '{"user":"b","page":"home","seconds":50}', 2),
    ],
    {"out": [("a", Click("a", "home", 30), 30), ("a", None, 40), ("b", Click("b", "home", 50), 50)]},
    tables="out",
)
def a_time_from_the_value_or_the_records_own_where_there_is_none(pipeline: Pipeline) -> None:
    pipeline.table("in", value=Click, timestamp=lambda click: click.seconds).to("out")


@case(
    [
        ("in", "1", '{"user":"a","page":"home","seconds":3}', 1),
        ("in", "2", '{"user":"a","page":"cart","seconds":4}', 2),
    ],
    {"out": [("a", 3, 1), ("a", 7, 2)]},
    tables="out",
)
def typed_by_a_dataclass(pipeline: Pipeline) -> None:
    clicks = pipeline.stream("in", value=Click, starting="earliest")
    clicks.group_by(lambda click: click.user, key=str).aggregate(int, lambda total, click: total + click.seconds).to(
        "out"
    )


@case(
    [
        ("in", "1", '{"user":"a","page":"home","seconds":3}', 1),
        ("in", "2", "no JSON", 2),
        ("in", "3", '{"user":"b"}', 3),
    ],
    {"out": [("a", "home", 1)]},
)
def undecodable_records_do_not_reach_the_functions(pipeline: Pipeline) -> None:
    clicks = pipeline.stream("in", value=Click, starting="earliest", dead_letters="dead")
    clicks.map(lambda key, click: (click.user, click.page), key=str, to=str).to("out")
