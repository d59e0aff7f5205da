"""The language of places in a topic."""

from datetime import datetime

import pytest

from penstock.base.ids import TopicPartition
from penstock.cli.failures import Usage
from penstock.cli.offsets import Place, parse_place, parse_range, parse_time

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("start", Place("start")),
        ("end", Place("end")),
        ("42", Place("offset", 42)),
        ("+5", Place("after_start", 5)),
        ("-10", Place("before_end", 10)),
        ("shift:-3", Place("shift", -3)),
        ("@-1h", Place("time", NOW_MS - 3_600_000)),
        ("@-1h30m", Place("time", NOW_MS - 5_400_000)),
        ("@1767225600000", Place("time", 1767225600000)),
        ("@1767225600", Place("time", 1767225600000)),
    ],
)
def test_every_word_of_it(text, place):
    assert parse_place(text, NOW_MS) == place


@pytest.mark.parametrize("text", ["", "middle", "1x", "+x", "@soon", "@-1y", "shift:"])
def test_anything_else_is_a_usage_error(text):
    with pytest.raises(Usage):
        parse_place(text, NOW_MS)


def test_iso_times_are_local_unless_they_name_a_zone():
    assert parse_time("2026-01-01T00:00:00Z") == 1767225600000
    assert parse_time("2026-01-01") == int(datetime(2026, 1, 1).timestamp() * 1000)


def test_ranges():
    assert parse_range("5..end") == (Place("offset", 5), Place("end"))
    assert parse_range("..7") == (Place("start"), Place("offset", 7))
    assert parse_range("start") == (Place("start"), None)


class Offsets:
    """A cluster of one partition with offsets 10 to 20, whose record 15 is the first at or after the time 1000."""

    def offsets(self, partitions, spec="latest"):
        at = {"earliest": 10, "latest": 20, 1000: 15}.get(spec, -1)
        return dict.fromkeys(partitions, at)


@pytest.mark.parametrize(
    ("place", "offset"),
    [
        (Place("start"), 10),
        (Place("end"), 20),
        (Place("offset", 12), 12),
        (Place("offset", 3), 10),
        (Place("offset", 99), 20),
        (Place("after_start", 4), 14),
        (Place("before_end", 4), 16),
        (Place("before_end", 400), 10),
        (Place("time", 1000), 15),
        (Place("time", 2000), 20),
        (Place("shift", 1), 14),
    ],
)
def test_a_place_is_an_offset_inside_the_partition(place, offset):
    partition = TopicPartition("t", 0)
    assert place.resolve(Offsets(), [partition], {partition: 13}) == {partition: offset}
