"""What the scenarios say of Apache Kafka Streams is what Kafka Streams does: recorded anew, they read the same."""

from __future__ import annotations

from collections import Counter

from tests.pipeline.parity import kafka_streams, scenarios


def test_kafka_streams_still_makes_of_every_scenario_what_is_recorded() -> None:
    kafka_streams.require()
    again = kafka_streams.recorded()
    for path, text in again.items():
        assert text == path.read_text(), f"{path.name}: `python -m tests.pipeline.parity.kafka_streams` records it anew"


def test_every_scenario_has_a_name_of_its_own_and_says_what_it_shows() -> None:
    everything = scenarios.load_all()
    assert [name for name, count in Counter(one["name"] for one in everything).items() if count > 1] == []
    assert [one["name"] for one in everything if len(one["why"]) < 20 or not one["inputs"]] == []


def test_the_files_are_written_as_people_read_them() -> None:
    assert [path.name for path in scenarios.files() if scenarios.render(scenarios.load(path)) != path.read_text()] == []
