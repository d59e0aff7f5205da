"""The topologies of the scenarios in our own DSL, under the names that the Java side gives them, and their run on rows.

Each is written as its user would write it, beside its Java twin: `Parity.java` and the files next to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from penstock.pipeline import (
    Context,
    Driver,
    JoinWindows,
    Pipeline,
    Processor,
    SessionWindows,
    SlidingWindows,
    Stream,
    Table,
    TimeWindows,
    UnlimitedWindows,
    Windowed,
)
from penstock.pipeline.topology.grouped import Cogrouped, GroupedStream, GroupedTable
from tests.pipeline.parity.scenarios import Output, Scenario

Build = Callable[[Pipeline], None]


class Printed:
    """What every topology writes with: JSON, a windowed key as key, start and end."""

    def encode(self, value: Any) -> bytes | None:
        if value is None:
            return None
        return json.dumps(value._asdict() if isinstance(value, Windowed) else value).encode()

    def decode(self, data: bytes) -> Any:
        return json.loads(data)


def run(scenario: Scenario) -> list[Output]:
    """What our DSL makes of a scenario, in the form of what is recorded of Kafka Streams."""
    pipeline = Pipeline("parity")
    TOPOLOGIES[scenario["topology"]](pipeline)
    driver = Driver(pipeline)
    outputs: list[Output] = []
    for number, row in enumerate(scenario["inputs"], 1):
        seen = len(driver.outputs)
        driver.send(row["topic"], row["key"], row["value"], timestamp=row["timestamp"])
        # Between topics, the order is that of their names: the Java side knows no other.
        for output in sorted(driver.outputs[seen:], key=lambda one: one.topic):
            key, value = (None if data is None else json.loads(data) for data in (output.key, output.value))
            outputs.append(
                {"row": number, "topic": output.topic, "key": key, "value": value, "timestamp": output.timestamp}
            )
    return outputs


def out(result: Stream | Table, topic: Any = "out") -> None:
    stream = result.to_stream() if isinstance(result, Table) else result
    stream.to(topic, key=Printed(), value=Printed())


def read(pipeline: Pipeline, topic: str = "in") -> Stream:
    return pipeline.stream(topic, key=str, value=str)


def read_table(pipeline: Pipeline, topic: str = "in") -> Table:
    return pipeline.table(topic, key=str, value=str)


def grouped(pipeline: Pipeline, topic: str = "in") -> GroupedStream:
    return read(pipeline, topic).group_by_key()


def filter_map(pipeline: Pipeline) -> None:
    kept = read(pipeline).filter(lambda value: value is not None).filter_not(lambda value: value.startswith("x"))
    out(kept.map(lambda key, value: (value, key)).map_values(lambda value: f"{'null' if value is None else value}!"))


def flat_map(pipeline: Pipeline) -> None:
    words = read(pipeline).flat_map(lambda key, value: [(word, key) for word in value.split()])
    out(words.flat_map_values(lambda value: [value, value + value]))


def branch(pipeline: Pipeline) -> None:
    long, a, rest = read(pipeline).branch(
        lambda value: value is not None and len(value) > 3,
        lambda value: value is not None and value.startswith("a"),
    )
    out(long, "long")
    out(a, "a")
    out(rest, "rest")


def repartition(pipeline: Pipeline) -> None:
    letters = read(pipeline).select_key(lambda value: None if value is None or value[0] == "?" else value[0])
    out(letters.repartition())


class Numbered(Processor):
    """Each row with its number within its key; a null value forgets the key."""

    def process(self, key: Any, value: Any, context: Context) -> None:
        if value is None:
            context.state = None
            return
        context.state = (context.state or 0) + 1
        context.forward(f"{context.state} {value}")


class Gathered(Processor):
    """Values are gathered by key, and sent on when stream time reaches the next multiple of 10 ms."""

    def process(self, key: Any, value: Any, context: Context) -> None:
        context.state = (context.state or "") + value
        context.set_timer((context.stream_time // 10 + 1) * 10)

    def on_timer(self, at: int, context: Context) -> None:
        context.forward(context.state)
        context.state = None


def joined(one: str, other: str) -> str:
    return f"{one},{other}"


def added(aggregate: str, value: str) -> str:
    return f"{aggregate}+{value}"


def subtracted(aggregate: str, value: str) -> str:
    return f"{aggregate}-{value}"


def merged(one: str, other: str) -> str:
    return f"({one})({other})"


def zero() -> str:
    return "0"


def tumbling(pipeline: Pipeline, size: int, grace: int, *, on_close: bool = False) -> GroupedStream:
    return grouped(pipeline).windowed_by(TimeWindows.of(size, grace=grace), on_close=on_close)


def hopping(pipeline: Pipeline, size: int, hop: int, grace: int, *, on_close: bool = False) -> GroupedStream:
    return grouped(pipeline).windowed_by(TimeWindows.of(size, advance=hop, grace=grace), on_close=on_close)


def sliding(pipeline: Pipeline, difference: int, grace: int, *, on_close: bool = False) -> GroupedStream:
    return grouped(pipeline).windowed_by(SlidingWindows.of(difference, grace=grace), on_close=on_close)


def sessions(pipeline: Pipeline, gap: int, grace: int, *, on_close: bool = False) -> GroupedStream:
    return grouped(pipeline).windowed_by(SessionWindows.of(gap, grace=grace), on_close=on_close)


def closed(windows: GroupedStream) -> Table:
    return windows.count().suppress(until_window_closes=True)


def cogrouped(pipeline: Pipeline) -> Cogrouped:
    return grouped(pipeline, "left").cogroup(added).cogroup(grouped(pipeline, "right"), subtracted)


def grouped_table(pipeline: Pipeline) -> GroupedTable:
    """A value is "group:number"; one without a group has the group None and takes no part."""
    return read_table(pipeline).group_by(lambda value: (value.split(":")[0] or None, value.split(":")[1]))


def pair(left: str | None, right: str | None) -> str:
    return f"{'-' if left is None else left}+{'-' if right is None else right}"


def reference(value: str | None) -> str | None:
    """A left value refers to a row of the right by what stands before its colon; without one, to none."""
    return value.split(":")[0] if value is not None and ":" in value else None


def streams(pipeline: Pipeline) -> tuple[Stream, Stream]:
    return read(pipeline, "left"), read(pipeline, "right")


def inner(windows: JoinWindows) -> Build:
    def build(pipeline: Pipeline) -> None:
        left, right = streams(pipeline)
        out(left.join(right, pair, windows))

    return build


def left_outer(windows: JoinWindows) -> Build:
    def build(pipeline: Pipeline) -> None:
        left, right = streams(pipeline)
        out(left.left_join(right, pair, windows))

    return build


def full_outer(windows: JoinWindows) -> Build:
    def build(pipeline: Pipeline) -> None:
        left, right = streams(pipeline)
        out(left.outer_join(right, pair, windows))

    return build


def self_join(pipeline: Pipeline) -> None:
    both = read(pipeline, "left")
    out(both.join(both, pair, JoinWindows.of(10, grace=5)))


def with_table(how: str) -> Build:
    def build(pipeline: Pipeline) -> None:
        left, right = read(pipeline, "left"), read_table(pipeline, "right")
        out(getattr(left, how)(right, pair))

    return build


def with_global(how: str) -> Build:
    def build(pipeline: Pipeline) -> None:
        left, right = read(pipeline, "left"), pipeline.global_table("right", key=str, value=str)
        out(getattr(left, how)(right, pair, key=reference))

    return build


def tables(how: str, **options: Any) -> Build:
    def build(pipeline: Pipeline) -> None:
        left, right = read_table(pipeline, "left"), read_table(pipeline, "right")
        out(getattr(left, how)(right, pair, **options))

    return build


STATELESS: dict[str, Build] = {
    "filter-map": filter_map,
    "flat-map": flat_map,
    "merge": lambda pipeline: out(read(pipeline, "left").merge(read(pipeline, "right"))),
    "branch": branch,
    "repartition": repartition,
    "dynamic-topic": lambda pipeline: out(read(pipeline), lambda key, value: f"out-{key}"),
    "process-store": lambda pipeline: out(read(pipeline).process(Numbered)),
    "process-punctuate": lambda pipeline: out(read(pipeline).process(Gathered)),
}

TIME_WINDOWS: dict[str, Build] = {
    "tumbling-count-10-0": lambda pipeline: out(tumbling(pipeline, 10, 0).count()),
    "tumbling-count-10-5": lambda pipeline: out(tumbling(pipeline, 10, 5).count()),
    "tumbling-reduce-10-5": lambda pipeline: out(tumbling(pipeline, 10, 5).reduce(joined)),
    "tumbling-aggregate-10-5": lambda pipeline: out(tumbling(pipeline, 10, 5).aggregate(zero, added)),
    "tumbling-closed-10-5": lambda pipeline: out(tumbling(pipeline, 10, 5, on_close=True).count()),
    "tumbling-closed-unkept-10-5": lambda pipeline: out(tumbling(pipeline, 10, 5, on_close=True).count()),
    "unlimited-count": lambda pipeline: out(grouped(pipeline).windowed_by(UnlimitedWindows()).count()),
    "hopping-count-10-5-0": lambda pipeline: out(hopping(pipeline, 10, 5, 0).count()),
    "hopping-reduce-10-4-6": lambda pipeline: out(hopping(pipeline, 10, 4, 6).reduce(joined)),
    "hopping-closed-10-5-5": lambda pipeline: out(hopping(pipeline, 10, 5, 5, on_close=True).count()),
    "sliding-count-10-0": lambda pipeline: out(sliding(pipeline, 10, 0).count()),
    "sliding-count-10-50": lambda pipeline: out(sliding(pipeline, 10, 50).count()),
    "sliding-reduce-10-50": lambda pipeline: out(sliding(pipeline, 10, 50).reduce(joined)),
    "sliding-aggregate-10-50": lambda pipeline: out(sliding(pipeline, 10, 50).aggregate(zero, added)),
    "sliding-closed-10-5": lambda pipeline: out(sliding(pipeline, 10, 5, on_close=True).count()),
}

SESSIONS_AND_SUPPRESS: dict[str, Build] = {
    "session-count-10-0": lambda pipeline: out(sessions(pipeline, 10, 0).count()),
    "session-count-10-20": lambda pipeline: out(sessions(pipeline, 10, 20).count()),
    "session-reduce-10-20": lambda pipeline: out(sessions(pipeline, 10, 20).reduce(joined)),
    "session-aggregate-10-20": lambda pipeline: out(sessions(pipeline, 10, 20).aggregate(zero, added, merge=merged)),
    "session-closed-10-5": lambda pipeline: out(sessions(pipeline, 10, 5, on_close=True).count()),
    "tumbling-suppressed-10-5": lambda pipeline: out(closed(tumbling(pipeline, 10, 5))),
    "hopping-suppressed-10-5-0": lambda pipeline: out(closed(hopping(pipeline, 10, 5, 0))),
    "session-suppressed-10-5": lambda pipeline: out(closed(sessions(pipeline, 10, 5))),
    "sliding-suppressed-10-5": lambda pipeline: out(closed(sliding(pipeline, 10, 5))),
    "tumbling-limited-10-0-20": lambda pipeline: out(tumbling(pipeline, 10, 0).count().suppress(for_=20)),
    "count-limited-20": lambda pipeline: out(grouped(pipeline).count().suppress(for_=20)),
}

AGGREGATES: dict[str, Build] = {
    "count": lambda pipeline: out(grouped(pipeline).count()),
    "reduce": lambda pipeline: out(
        grouped(pipeline).reduce(lambda older, newer: None if newer == "end" else joined(older, newer))
    ),
    "aggregate": lambda pipeline: out(
        grouped(pipeline).aggregate(zero, lambda sum_, value: None if value == "clear" else added(sum_, value))
    ),
    "group-by-count": lambda pipeline: out(read(pipeline).group_by(lambda value: value and value[0]).count()),
    "cogroup": lambda pipeline: out(cogrouped(pipeline).aggregate(zero)),
    "cogroup-tumbling-10-5": lambda pipeline: out(
        cogrouped(pipeline).windowed_by(TimeWindows.of(10, grace=5)).aggregate(zero)
    ),
    "cogroup-sliding-10-50": lambda pipeline: out(
        cogrouped(pipeline).windowed_by(SlidingWindows.of(10, grace=50)).aggregate(zero)
    ),
    "cogroup-session-10-20": lambda pipeline: out(
        cogrouped(pipeline).windowed_by(SessionWindows.of(10, grace=20)).aggregate(zero, merge=merged)
    ),
}

TABLES: dict[str, Build] = {
    "table": lambda pipeline: out(read_table(pipeline)),
    "to-table": lambda pipeline: out(read(pipeline).to_table()),
    "table-filter": lambda pipeline: out(read_table(pipeline).filter(lambda value: value.startswith("a"))),
    "table-filter-kept": lambda pipeline: out(read_table(pipeline).filter(lambda value: value.startswith("a"))),
    "table-map-values": lambda pipeline: out(read_table(pipeline).map_values(str.upper)),
    "table-group-aggregate": lambda pipeline: out(grouped_table(pipeline).aggregate(zero, added, subtracted)),
    "table-group-count": lambda pipeline: out(grouped_table(pipeline).count()),
    "table-group-reduce": lambda pipeline: out(
        grouped_table(pipeline).reduce(
            lambda sum_, value: str(int(sum_) + int(value)), lambda sum_, value: str(int(sum_) - int(value))
        )
    ),
}

JOINS: dict[str, Build] = {
    "stream-stream-inner-10-0": inner(JoinWindows.of(10)),
    "stream-stream-inner-10-20": inner(JoinWindows.of(10, grace=20)),
    "stream-stream-inner-before-0-after-10": inner(JoinWindows.of(10, before=0, grace=5)),
    "stream-stream-left-10-5": left_outer(JoinWindows.of(10, grace=5)),
    "stream-stream-left-before-10-after-0": left_outer(JoinWindows.of(10, after=0)),
    "stream-stream-outer-10-5": full_outer(JoinWindows.of(10, grace=5)),
    "stream-stream-outer-before-0-after-10": full_outer(JoinWindows.of(10, before=0)),
    "stream-self-10-5": self_join,
    "stream-table-inner": with_table("join"),
    "stream-table-left": with_table("left_join"),
    "stream-global-inner": with_global("join"),
    "stream-global-left": with_global("left_join"),
    "table-table-inner": tables("join"),
    "table-table-left": tables("left_join"),
    "table-table-outer": tables("outer_join"),
    "foreign-key-inner": tables("join", foreign_key=reference),
    "foreign-key-left": tables("left_join", foreign_key=reference),
}

TOPOLOGIES = STATELESS | TIME_WINDOWS | SESSIONS_AND_SUPPRESS | AGGREGATES | TABLES | JOINS
