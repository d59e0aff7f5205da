"""Scenarios made by chance, for comparing our DSL with Apache Kafka Streams where nobody thought of an example.

Inputs keep away from what is listed in `differences.py`: where only rows out of order or only a coincidence of times to
the millisecond part the two, there is none of that; where only the order or a needless tombstone does, `essence` takes
it out of both sides.
"""

from __future__ import annotations

from random import Random

from tests.pipeline.parity.scenarios import Input, Output, Scenario

WORDS = ["apple", "ant", "bee", "xen", "a", "b", "bet", "berry"]
COMPARED = [
    *("filter-map", "merge", "branch", "process-store"),
    *("count", "reduce", "aggregate", "group-by-count", "cogroup"),
    *("table", "to-table", "table-map-values", "table-group-aggregate", "table-group-count", "table-group-reduce"),
    *("tumbling-count-10-0", "tumbling-count-10-5", "tumbling-reduce-10-5", "tumbling-closed-10-5", "unlimited-count"),
    *("hopping-count-10-5-0", "hopping-reduce-10-4-6", "hopping-closed-10-5-5"),
    *("sliding-count-10-0", "sliding-count-10-50", "sliding-reduce-10-50", "sliding-closed-10-5"),
    *("session-count-10-0", "session-count-10-20", "session-reduce-10-20", "session-closed-10-5"),
    *("tumbling-suppressed-10-5", "hopping-suppressed-10-5-0", "cogroup-tumbling-10-5", "cogroup-sliding-10-50"),
    *("stream-stream-inner-10-0", "stream-stream-inner-10-20", "stream-stream-inner-before-0-after-10"),
    *("stream-stream-left-10-5", "stream-stream-left-before-10-after-0"),
    *("stream-stream-outer-10-5", "stream-stream-outer-before-0-after-10", "stream-self-10-5"),
    *("stream-table-inner", "stream-table-left", "stream-global-inner", "stream-global-left"),
    *("table-table-inner", "table-table-left", "table-table-outer", "foreign-key-inner", "foreign-key-left"),
]
IN_ORDER = ("stream-stream", "stream-self", "cogroup-tumbling", "sliding-count-10-0", "sliding-closed")
COARSE = ("session", "stream-stream", "stream-self")
"""Times are multiples of 7 ms, which no window, grace or retention is: nothing happens at the moment of closing."""
TAKES_NULL_VALUES = ("tumbling", "hopping", "session", "unlimited", "cogroup-tumbling", "branch", "process")
TWO_TOPICS = ("merge", "cogroup", "stream-stream", "stream-table", "stream-global", "table-table", "foreign-key")
REFERENCES = ("stream-global", "foreign-key")


def scenario(topology: str, number: int, chance: Random) -> Scenario:
    """A few rows that come in bursts and pauses, some out of order, and one for each topic after all windows."""
    coarse = 7 if topology.startswith(COARSE) else 1
    topics = ["left", "right"] if topology.startswith(TWO_TOPICS) else ["left" if "self" in topology else "in"]
    step, reached, inputs = chance.choice([3, 8, 15, 30]), 0, []
    for _ in range(chance.randrange(4, 14)):
        reached += chance.randrange(step)
        late = 0 if topology.startswith(IN_ORDER) or chance.random() > 0.35 else chance.randrange(40)
        inputs.append(_row(topology, chance.choice(topics), max(0, reached - late) // coarse * coarse, chance))
    end = (reached + 1000) // coarse * coarse
    inputs += [_input(topic, "x", _value(topology, topic, chance), end) for topic in topics]
    return {"name": f"{topology} {number}", "topology": topology, "why": "by chance", "inputs": inputs, "outputs": []}


def _row(topology: str, topic: str, timestamp: int, chance: Random) -> Input:
    right = topic == "right" and topology.startswith(REFERENCES)
    key = None if chance.random() < 0.05 and "process" not in topology else chance.choice("pqr" if right else "aab")
    null = chance.random() < 0.12 and not topology.startswith(TAKES_NULL_VALUES)
    return _input(topic, key, None if null else _value(topology, topic, chance), timestamp)


def _input(topic: str, key: str | None, value: str | None, timestamp: int) -> Input:
    return {"topic": topic, "key": key, "value": value, "timestamp": timestamp}


def _value(topology: str, topic: str, chance: Random) -> str:
    number = chance.randrange(5)
    if topology.startswith(REFERENCES) and topic == "left":
        return "none" if chance.random() < 0.15 else f"{chance.choice('pqr')}:{number}"
    if topology.startswith("table-group"):
        return f"{chance.choice(['x', 'y', 'z', ''])}:{number}"
    if topology in ("reduce", "aggregate") and chance.random() < 0.15:
        return "end" if topology == "reduce" else "clear"
    return chance.choice(WORDS)


def essence(topology: str, outputs: list[Output]) -> list[Output]:
    """The outputs without what is listed as a difference."""
    if "sliding" in topology:
        outputs = [one for place, one in enumerate(outputs) if one not in outputs[:place]]
        return sorted(outputs, key=lambda one: (one["row"], str(one)))
    if topology == "session-closed-10-5":
        return sorted(outputs, key=lambda one: (one["row"], str(one)))
    if topology.startswith("session"):
        return [one for place, one in enumerate(outputs) if not _is_replaced(one, outputs[place + 1 : place + 2])]
    if topology.startswith(("stream-stream-left", "stream-stream-outer")):
        return sorted(({**one, "row": 0} for one in outputs), key=str)
    if topology.startswith("foreign-key"):
        outputs = [{**one, "timestamp": 0} if one["value"] is None else one for one in outputs]
    if topology.startswith(("table-table", "foreign-key")):
        return _without_deletions_of_nothing(outputs)
    return outputs


def _is_replaced(one: Output, following: list[Output]) -> bool:
    return one["value"] is None and any(one["key"] == next_["key"] for next_ in following)


def _without_deletions_of_nothing(outputs: list[Output]) -> list[Output]:
    there: set[str] = set()
    kept = []
    for one in outputs:
        if one["value"] is not None or one["key"] in there:
            kept.append(one)
        (there.discard if one["value"] is None else there.add)(one["key"])
    return kept
