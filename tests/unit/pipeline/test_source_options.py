"""The options of a read: Spark's names and defaults, and errors that say what to do."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.base.ids import TopicPartition
from penstock.pipeline.source.bounds import AtEdge, AtOffsets, AtTime, AtTimes
from penstock.pipeline.source.options import Limits, OptionError, ReadOptions, Split, parse
from penstock.pipeline.source.subscription import Assigned, Pattern, Topics
from penstock.wire.offsets import EARLIEST, LATEST
from penstock.wire.sasl import Credentials
from penstock.wire.security import Pem


def read(*, streaming: bool = False, **options: str) -> ReadOptions:
    return parse({"bootstrap": "here:9092", "subscribe": "orders"} | options, streaming=streaming)


def refusal(*, streaming: bool = False, **options: Any) -> str:
    with pytest.raises(OptionError) as caught:
        read(streaming=streaming, **options)
    return str(caught.value)


def test_a_batch_reads_everything_and_a_stream_what_comes() -> None:
    assert (read().starting, read().ending) == (AtEdge(EARLIEST), AtEdge(LATEST))
    assert read(streaming=True).starting == AtEdge(LATEST)


def test_names_do_not_depend_on_case() -> None:
    assert not read(FAILONDATALOSS="false").fail_on_data_loss


def test_a_time_for_all_wins_over_times_and_these_over_offsets() -> None:
    times = {"startingOffsetsByTimestamp": '{"orders":{"0":7}}', "startingOffsets": "earliest"}
    assert read(**times).starting == AtTimes({TopicPartition("orders", 0): 7})
    assert read(**times, startingTimestamp="9").starting == AtTime(9)


def test_offsets_are_given_by_partition_with_minus_two_as_the_first() -> None:
    given = read(startingOffsets='{"orders":{"0":23,"1":-2}}').starting
    assert given == AtOffsets({TopicPartition("orders", 0): 23, TopicPartition("orders", 1): EARLIEST})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"startingOffsets": "latest"}, "startingOffsets cannot be 'latest' here"),
        ({"startingOffsets": '{"orders":{"0":-1}}'}, "orders-0 cannot be -1 (latest) here"),
        ({"endingOffsets": "earliest"}, "endingOffsets cannot be 'earliest' here"),
        ({"endingOffsets": '{"orders":{"0":-2}}'}, "orders-0 cannot be -2 (earliest) here"),
        ({"startingOffsets": "tomorrow"}, "startingOffsets should be earliest, latest or JSON"),
        ({"startingOffsets": '{"orders":{"0":"3"}}'}, "'3' is no whole number"),
        ({"startingOffsets": '{"orders":{"0":-7}}'}, "-7 of orders-0 is no offset; -2 means earliest"),
        ({"startingTimestamp": "today"}, "startingTimestamp is milliseconds since 1970, not 'today'"),
        ({"maxOffsetsPerTrigger": "5"}, "maxOffsetsPerTrigger does not apply here"),
        ({"minPartitions": "0"}, "minPartitions is a whole number above 0"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss is true or false, not 'maybe'"),
        ({"kafka.isolation.level": "committed"}, "read_uncommitted or read_committed, not 'committed'"),
        ({"assign": '{"orders":[0]}'}, "exactly one of subscribe, subscribePattern, assign (given: subscribe and assi"),
        ({"startingofsets": "earliest"}, "did you mean 'startingOffsets'?"),
        ({"kafka.isolation.levle": "read_committed"}, "did you mean 'kafka.isolation.level'?"),
        ({"kafka.auto.offset.reset": "earliest"}, "startingOffsets says where to begin"),
        ({"kafka.security.protocol": "SASL_SSL"}, "kafka.sasl.mechanism is needed: one of PLAIN"),
        ({"kafka.security.protocol": "SSL", "kafka.ssl.truststore.type": "JKS"}, "only PEM is read: `keytool"),
        ({"kafka.sasl.jaas.confg": "x"}, "did you mean 'kafka.sasl.jaas.config'?"),
        ({"path": "orders"}, 'topics are named by .option("subscribe", ...)'),
        ({"colour": "red"}, "unknown option 'colour'"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_the_next_step(options: dict[str, str], said: str) -> None:
    assert said in refusal(**options)


def test_a_stream_has_no_end() -> None:
    assert "endingOffsets does not apply here: a batch read has an end" in refusal(
        streaming=True, endingOffsets="latest"
    )


def test_the_least_of_a_trigger_is_not_more_than_the_most() -> None:
    text = refusal(streaming=True, minOffsetsPerTrigger="9", maxOffsetsPerTrigger="5")
    assert text == "minOffsetsPerTrigger (9) is larger than maxOffsetsPerTrigger (5)"


def test_durations_have_units() -> None:
    options = {"minOffsetsPerTrigger": "9", "maxTriggerDelay": "2m"}
    assert read(streaming=True, **options).limits == Limits(None, 9, 120_000)


def test_a_cluster_must_be_named() -> None:
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers \(or bootstrap\)"):
        parse({"subscribe": "orders"}, streaming=False)


def test_topics_by_name_by_pattern_and_partition_by_partition() -> None:
    assert read(subscribe=" a, b ,a").subscription == Topics(("a", "b"))
    base = {"bootstrap": "here:9092"}
    assert parse(base | {"subscribePattern": "or.*"}, streaming=False).subscription == Pattern("or.*")
    assigned = parse(base | {"assign": '{"b":[1],"a":[2,0]}'}, streaming=False).subscription
    assert assigned == Assigned((TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 1)))


def test_a_pattern_matches_the_whole_name() -> None:
    assert Pattern("orders").matches("orders") and not Pattern("orders").matches("orders-2")


def test_settings_of_kafka_lose_their_prefix_and_options_of_others_are_left_to_them() -> None:
    options = {
        "bootstrap": "b:1",
        "subscribe": "t",
        "kafka.client.id": "me",
        "minPartitions": "4",
        "valueFormat": "json",
    }
    parsed = parse(options, streaming=False, others=["valueFormat"])
    assert (parsed.client, parsed.split) == ({"client.id": "me"}, Split(least_tasks=4))


def test_security_is_parsed_and_no_secret_is_shown() -> None:
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required username=alice password='hush-hush';"
    options = {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": login,
        "kafka.ssl.ca.location": "/ca.pem",
        "kafka.ssl.key.password": "hush-hush",
    }
    parsed = read(**options)
    assert parsed.security.credentials == Credentials("PLAIN", "alice", "hush-hush")
    assert parsed.security.tls is not None and parsed.security.tls.trusted == Pem("ssl.ca.location", "/ca.pem")
    assert parsed.client == {}
    assert "hush-hush" not in repr(parsed)
