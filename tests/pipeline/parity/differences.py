"""Where our DSL and Apache Kafka Streams part, scenario by scenario: the one table of it, with the reason.

Every other scenario gives the same rows in the same order, each brought about by the same input row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Rows = list[tuple[Any, Any, int]]
"""(key, value, timestamp), all to the topic `out`"""


class Difference(NamedTuple):
    why: str
    instead: dict[int, Rows] = {}
    """Number of an input row to what we write for it, where that is not what Kafka Streams writes."""
    any_order: bool = False
    """For one input row the same rows come, each once, in another order."""


def _window(key: str, start: int, end: int) -> dict[str, Any]:
    return {"key": key, "start": start, "end": end}


_BY_START = "The windows that one row changes come in the order of their starts, and each once."
_NULL_VALUES = (
    "A row without a value is left out by every aggregation, and does not move its time. Kafka Streams leaves it out"
    " without windows and in sliding ones, and takes it in tumbling, hopping and session windows."
)
_NO_NEEDLESS_TOMBSTONE = (
    "A row inside a session leaves its window as it is: the value is replaced, without a tombstone before it."
)
_NO_DELETION_OF_NOTHING = "A join knows its last result: where there was none, nothing is deleted and nothing written."
_MERGED_ALONE = "Sessions are merged with each other alone; Kafka Streams begins with the initial value."
_CLOSED_ONCE = (
    "Suppressed sessions and sliding windows come out when the aggregation takes no more rows for them, so that none"
    " comes out and then changes: a millisecond of stream time later than in Kafka Streams."
)
_STATE_UNTIL_CLOSED = (
    "State is kept as long as a window is open. The stores of Kafka Streams have a retention of their own, which can"
    " end before that."
)

DIFFERENCES: dict[str, Difference] = {
    "sliding count": Difference(_BY_START, any_order=True),
    "sliding count, out of order": Difference(_BY_START, any_order=True),
    "sliding count, early rows": Difference(_BY_START, any_order=True),
    "sliding count, same timestamp": Difference(_BY_START, any_order=True),
    "sliding count, no grace": Difference(_BY_START, any_order=True),
    "sliding reduce, out of order": Difference(_BY_START, any_order=True),
    "sliding aggregate, null keys and values": Difference(_BY_START, any_order=True),
    "cogroup, sliding": Difference(_BY_START, any_order=True),
    "sliding count, a late row beside another late row": Difference(
        "A sliding window is made from the rows that it holds. Kafka Streams keeps no rows and makes it from the value"
        " of a neighbouring window, which is missing where that one was closed already.",
        {
            5: [
                (_window("a", 22, 32), 1, 29),
                (_window("a", 24, 34), 2, 34),
                (_window("a", 26, 36), 3, 36),
                (_window("a", 30, 40), 2, 36),
                (_window("a", 35, 45), 1, 36),
            ]
        },
    ),
    "tumbling count, null keys and values": Difference(
        _NULL_VALUES,
        {
            3: [],
            4: [(_window("a", 0, 10), 2, 4)],
            5: [],
            6: [(_window("a", 0, 10), 3, 5)],
        },
    ),
    "table-table inner join, a deletion of nothing": Difference(_NO_DELETION_OF_NOTHING, {2: [], 5: []}),
    "table-table left join, a deletion of nothing": Difference(_NO_DELETION_OF_NOTHING, {2: [], 5: []}),
    "foreign-key inner join, from nothing to nothing": Difference(_NO_DELETION_OF_NOTHING, {2: [], 3: [], 5: []}),
    "foreign-key inner join, a deletion out of order": Difference(
        "The deletion of a result has the timestamp of the left row that ended it.",
        {4: [("a", None, 5)], 5: [("b", None, 6)]},
    ),
    "session reduce, a null value": Difference(
        _NULL_VALUES, {2: [], 3: [(_window("a", 0, 0), None, 0), (_window("a", 0, 8), "p,q", 8)]}
    ),
    "session count, out of order": Difference(_NO_NEEDLESS_TOMBSTONE, {5: [(_window("a", 5, 25), 5, 25)]}),
    "session count, same timestamp": Difference(_NO_NEEDLESS_TOMBSTONE, {4: [(_window("a", 10, 20), 4, 20)]}),
    "session aggregate, order of the merger": Difference(
        _MERGED_ALONE,
        {
            4: [
                (_window("a", 15, 15), None, 15),
                (_window("a", 29, 29), None, 29),
                (_window("a", 15, 29), "(0+2)(0+3)+4", 29),
            ],
            5: [
                (_window("a", 0, 0), None, 0),
                (_window("a", 15, 29), None, 29),
                (_window("a", 0, 29), "(0+1)((0+2)(0+3)+4)+5", 29),
            ],
        },
    ),
    "cogroup, session": Difference(
        _MERGED_ALONE,
        {
            3: [
                (_window("a", 0, 0), None, 0),
                (_window("a", 15, 15), None, 15),
                (_window("a", 0, 15), "(0+1)(0-2)+3", 15),
            ]
        },
    ),
    "session count, on the edge of closing": Difference(
        _STATE_UNTIL_CLOSED, {3: [(_window("a", 0, 0), None, 0), (_window("a", 0, 1), 2, 1)]}
    ),
    "tumbling count, emitted at close, a jump past the retention": Difference(
        _STATE_UNTIL_CLOSED, {4: [(_window("a", 10, 20), 1, 16)]}
    ),
    "stream-stream inner join, on the edge of retention": Difference(_STATE_UNTIL_CLOSED, {3: [("a", "L1+R1", 10)]}),
    "stream-stream inner join, each side keeps its rows by its own time": Difference(
        "A join has one stream time. A row is kept for its window, the other side's and the grace; in Kafka Streams"
        " each side drops its rows by its own time, so a side that stands still keeps them for longer.",
        {3: []},
    ),
    "suppress until sessions close": Difference(_CLOSED_ONCE, {3: [], 4: [(_window("a", 0, 0), 1, 0)]}),
    "suppress until a session closes, and a row joins it at that moment": Difference(
        _CLOSED_ONCE, {2: [], 4: [(_window("a", 0, 5), 2, 5), (_window("b", 15, 15), 1, 15)]}
    ),
    "suppress until sliding windows close": Difference(
        _CLOSED_ONCE,
        {
            2: [],
            3: [(_window("a", 0, 10), 1, 10)],
            4: [],
            5: [
                (_window("b", 5, 15), 1, 15),
                (_window("b", 6, 16), 2, 16),
                (_window("a", 10, 20), 2, 20),
                (_window("a", 11, 21), 1, 20),
                (_window("b", 16, 26), 1, 16),
            ],
        },
    ),
    "suppress until a time limit, table": Difference(
        "What is due goes out before the row that brings the time is worked on; Kafka Streams takes that row in first.",
        {8: [("b", 1, 10)], 9: [("c", 2, 29), ("a", 4, 21), ("b", 2, 30)], 10: [("x", 1, 100)]},
    ),
    "cogroup, tumbling": Difference(
        "The streams of a cogroup share one stream time; in Kafka Streams each has its own, though their state is one.",
        {6: []},
    ),
    "stream-stream left join, out of order within the grace": Difference(
        "A row waits for a partner until its window and the grace are past, out of order or not, so it is never there"
        " both alone and joined within the grace.",
        {2: []},
    ),
    "stream-stream left join, only before": Difference(
        "A row without a partner goes out as soon as its window is past, whichever side brought the time.",
        {5: [("b", "L2+-", 12)], 6: [("a", "L3+R1", 14), ("a", "L3+R2", 14)]},
    ),
    "selectKey, repartition": Difference(
        "repartition() has nothing to do and drops nothing: what needs a key leaves rows without one out.",
        {3: [(None, "?none", 4)], 4: [(None, None, 4)]},
    ),
    "process with a stream-time punctuator": Difference(
        "Timers belong to a key, are set for a moment, and fire before the row that reaches it; a punctuator belongs to"
        " a partition, fires at intervals and after the row, and sees the keys of all.",
        {
            1: [],
            4: [("a", "13", 10), ("b", "2", 10)],
            6: [("a", "4", 20), ("c", "5", 20)],
            9: [("a", "8", 50), ("b", "67", 50)],
        },
    ),
}
