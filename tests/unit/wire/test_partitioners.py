from __future__ import annotations

import pytest

from penstock.wire.partitioners import RoundRobin, Sticky, murmur2, partition_of_key

FROM_JAVA = [
    ("", 275646681, 2),
    ("a", -1563381124, 5),
    ("ab", 316155434, 0),
    ("abc", 479470107, 4),
    ("abcd", -1323649548, 5),
    ("abcde", 461995741, 4),
    ("penstock", 2086449332, 2),
    ("21", -973932308, 3),
    ("foobar", -790332482, 0),
    ("a-little-bit-long-string", -985981536, 1),
    ("a-little-bit-longer-string", -1486304829, 0),
    ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971, 3),
    ("éè€", 147881193, 5),
]
"""Key, Utils.murmur2 and toPositive(hash) % 7, printed by Apache Kafka 4.3.0's own class."""


@pytest.mark.parametrize(("key", "value", "partition"), FROM_JAVA)
def test_a_key_has_the_hash_and_the_partition_that_java_gives_it(key: str, value: int, partition: int) -> None:
    assert murmur2(key.encode()) == value
    assert partition_of_key(key.encode(), 7) == partition


def test_round_robin_takes_partitions_in_turn_for_each_topic() -> None:
    partitioner = RoundRobin()
    assert [partitioner.choose("t", None, 3) for _ in range(4)] == [0, 1, 2, 0]
    assert partitioner.choose("u", None, 3) == 0


def test_sticky_stays_until_a_batch_is_closed() -> None:
    turns = iter([2, 0])
    partitioner = Sticky(lambda bound: next(turns))
    assert [partitioner.choose("t", None, 3) for _ in range(3)] == [2, 2, 2]
    partitioner.batch_closed("t")
    assert partitioner.choose("t", None, 3) == 0


@pytest.mark.parametrize("partitioner", [RoundRobin(), Sticky(lambda bound: 0)])
def test_a_keyed_record_always_goes_by_its_key(partitioner: RoundRobin | Sticky) -> None:
    assert {partitioner.choose("t", b"foobar", 7) for _ in range(5)} == {0}
