"""Which partition a record goes to."""

import pytest

from penstock.client import RoundRobin, partition_for_key


# Java's org.apache.kafka.common.utils.Utils: toPositive(murmur2(key)) % 100, from its own test of murmur2.
@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_keys_are_hashed_as_in_java(key, hashed):
    assert partition_for_key(key, 100) == (hashed & 0x7FFFFFFF) % 100


def test_round_robin_counts_for_each_topic_alone():
    choose = RoundRobin()
    assert [choose("a", None, None, 2) for _ in range(3)] == [0, 1, 0]
    assert choose("b", None, None, 2) == 0
