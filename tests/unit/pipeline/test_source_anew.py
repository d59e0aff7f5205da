"""A stream whose topic is another one than before, though it has the name, or whose checkpoint is another query's."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMinRows

from penstock.base.ids import TopicPartition
from penstock.pipeline.source.loss import DataLost
from penstock.pipeline.source.planning import Range
from tests.unit.pipeline.test_source_limits import A, B, Ends, reader

ALL = ReadAllAvailable()


def ranges(made: Any, start: dict[str, Any], end: dict[str, Any]) -> list[Range]:
    return [Range(TopicPartition(one.topic, one.partition), one.start, one.end) for one in made.partitions(start, end)]


def read_once(**options: str) -> tuple[Any, Ends, dict[str, Any]]:
    """A stream that has read what is there, and then lost its topic to another one that is as long, or longer."""
    made, ends = reader(**options)
    done = made.latestOffset({"t": {"0": 0, "1": 0}}, ALL)
    ends.ids = {"t": "id2"}
    ends.ends = {A: 30, B: 40}
    return made, ends, done


def test_a_topic_made_anew_is_noticed_though_it_is_longer_than_what_was_read() -> None:
    made, _, done = read_once()
    with pytest.raises(
        DataLost, match="topic t was deleted and created anew since partition 0 was read up to offset 30"
    ):
        made.latestOffset(done, ALL)


def test_who_goes_on_with_what_is_left_reads_a_topic_made_anew_from_its_first_record() -> None:
    made, _, done = read_once(failOnDataLoss="false")
    following = made.latestOffset(done, ALL)
    assert ranges(made, done, following) == [Range(A, 0, 30), Range(B, 0, 40)]
    assert made.latestOffset(following, ALL) == following


def test_a_topic_made_anew_that_ends_where_the_old_one_did_is_read_too() -> None:
    made, ends, done = read_once(failOnDataLoss="false")
    ends.ends = {A: 30, B: 10}
    assert ranges(made, done, made.latestOffset(done, ALL)) == [Range(A, 0, 30), Range(B, 0, 10)]


def test_a_topic_made_anew_with_too_few_records_for_a_batch_is_read_when_there_are_enough() -> None:
    made, ends, done = read_once(failOnDataLoss="false", minOffsetsPerTrigger="100")
    noted = made.latestOffset(done, ReadMinRows(100))
    assert ranges(made, done, noted) == []
    ends.ends = {A: 90, B: 40}
    assert ranges(made, noted, made.latestOffset(noted, ReadMinRows(100))) == [Range(A, 0, 90), Range(B, 0, 40)]


def test_a_checkpoint_without_ids_goes_on_where_it_was() -> None:
    made, _ = reader()
    assert made.latestOffset({"t": {"0": 30, "1": 5}}, ALL)["t"] == {"0": 30, "1": 10}


def test_the_checkpoint_of_a_query_that_read_another_topic_is_told_by_name() -> None:
    made, _ = reader()
    said = (
        "the checkpoint has partition 0 of topic old read up to offset 7, and this query reads topics t: .* of its own"
    )
    with pytest.raises(DataLost, match=said):
        made.latestOffset({"old": {"0": 7}}, ALL)
