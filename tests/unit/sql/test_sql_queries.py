"""Queries on a broker, by DuckDB: formats, ranges, mistakes, the command's output, and continuous results."""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.cli import sql as command
from penstock.cli.failures import Failure
from penstock.client import Producer
from penstock.sql import SqlError, explain, query, reading, stream
from penstock.sql.catalog import Brokers, Catalog
from penstock.sql.planning import ranges_of

TEN_MS = 1_793_527_200_000


class Topic(NamedTuple):
    bootstrap: str
    name: str
    producer: Producer[Any, Any]

    def send(self, *values: Any, **more: Any) -> None:
        for value in values:
            self.producer.send(self.name, value, **more)
        self.producer.flush(30)

    def asked(self, text: str, **choices: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = query(self.bootstrap, text.format(t=f'"{self.name}"'), **choices).to_pylist()
        return found


@pytest.fixture
def topic(kafka_bootstrap_servers: str, kafka_topics: Callable[..., str], kafka_producer: Producer[Any, Any]) -> Topic:
    return Topic(kafka_bootstrap_servers, kafka_topics(partitions=2, config={"retention.ms": "-1"}), kafka_producer)


def order(number: int) -> str:
    return json.dumps({"id": number, "country": "de" if number % 2 else "fr"})


def fill(topic: Topic) -> None:
    """Ten orders, a second apart, in turn to both partitions."""
    for number in range(10):
        topic.send(order(number), key=f"k{number}", partition=number % 2, timestamp_ms=TEN_MS + number * 1000)


def test_members_of_json_are_columns_without_being_told_so(topic: Topic):
    fill(topic)
    found = topic.asked("select country, count(*) as n, max(id) as top from {t} group by country order by country")
    assert found == [{"country": "de", "n": 5, "top": 9}, {"country": "fr", "n": 5, "top": 8}]


def test_an_empty_topic_has_the_columns_of_a_record_and_no_rows(topic: Topic):
    assert topic.asked("select * from {t}") == []
    assert topic.asked("select count(*) as n from {t}") == [{"n": 0}]


def test_texts_and_numbers_by_format(topic: Topic):
    topic.send((42).to_bytes(8, "big"), key="a")
    assert topic.asked("select key, value from {t}") == [{"key": "a", "value": (42).to_bytes(8, "big")}]
    assert topic.asked("select key, value + 1 as more from {t}", value_format="long") == [{"key": "a", "more": 43}]
    assert topic.asked("select key from {t}", key_format={topic.name: "bytes"}) == [{"key": b"a"}]


def test_a_schema_that_is_given_is_taken(topic: Topic):
    fill(topic)
    found = topic.asked("select sum(id) as all_ids, max(other) as other from {t}", value_schema="id INT, other STRING")
    assert found == [{"all_ids": 45, "other": None}]


def test_describe_and_show(topic: Topic):
    fill(topic)
    described = {row["column"]: (row["type"], row["of"]) for row in topic.asked("describe {t}")}
    assert described["id"] == ("BIGINT", "value.id")
    assert described["value"] == ("BLOB", "value")
    assert described["timestamp"] == ("TIMESTAMP WITH TIME ZONE", "timestamp")
    assert {"table": topic.name, "partitions": 2, "offsets": 10} in topic.asked("show tables")


def test_only_what_can_be_needed_is_read(topic: Topic):
    fill(topic)
    where = "partition = 1 and timestamp >= '2026-11-01 10:00:03' and offset < 4"
    said = explain(topic.bootstrap, f'select country from "{topic.name}" where {where}')
    assert "partition 1: offsets 1 to 3" in said
    assert "partition 0" not in said
    assert "of the records: value, partition, offset, timestamp" in said


def test_ranges_end_where_the_topic_ended_then(topic: Topic):
    fill(topic)
    assert topic.asked("select count(*) as n from {t} as of offset 2") == [{"n": 4}]
    assert topic.asked("select max(id) as top from {t} as of timestamp '2026-11-01 10:00:04'") == [{"top": 4}]
    assert topic.asked("""select count(*) as n from {t} as of offsets '{{"0": 0, "1": -1}}'""") == [{"n": 5}]
    with pytest.raises(SqlError, match="names no offset for partition 1"):
        topic.asked("""select * from {t} as of offsets '{{"0": 0}}'""")


def test_a_topic_whose_first_records_are_gone_is_read_from_what_is_left(topic: Topic, kafka_admin: Any):
    from penstock.base.ids import TopicPartition
    from penstock.sql.narrowing import Narrowing

    fill(topic)
    kafka_admin.delete_records({TopicPartition(topic.name, 0): 3})
    assert topic.asked("select count(*) as n from {t}") == [{"n": 7}]
    with Catalog(Brokers(topic.bootstrap)) as catalog:
        assert [one.start for one in ranges_of(catalog, topic.name, Narrowing(), None)] == [3, 0]


def test_rows_that_nobody_wants_any_more_are_no_longer_read(topic: Topic):
    topic.send(*("x" * 1000 for _ in range(2000)), partition=0)
    topic.send(*("x" * 1000 for _ in range(2000)), partition=1)
    assert len(topic.asked("select key from {t} limit 1")) == 1
    deadline = time.monotonic() + 10
    while any(thread.name.startswith("penstock-sql-") for thread in threading.enumerate()):
        assert time.monotonic() < deadline, "a reader goes on after its query ended"
        time.sleep(0.05)


def test_what_goes_wrong_in_reading_is_told_as_it_is(topic: Topic, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object, **__: object) -> Iterator[Any]:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "the batch at offset 3 is corrupt")
        yield

    fill(topic)
    monkeypatch.setattr(reading, "read_range", broken)
    with pytest.raises(KafkaError, match="the batch at offset 3 is corrupt"):
        topic.asked("select count(*) from {t}")


def test_a_query_may_have_no_topic(topic: Topic):
    assert topic.asked("select 1 + 1 as two") == [{"two": 2}]


def test_a_query_may_read_a_topic_twice(topic: Topic):
    fill(topic)
    text = "with x as (select id from {t}) select count(*) as n from x a join x b on a.id = b.id + 1"
    assert topic.asked(text) == [{"n": 9}]


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("select contry from {t}", "no column 'contry'", "did you mean country?"),
        ("select nothing_like_it from {t}", "no column 'nothing_like_it'", "lists the columns"),
        ("select o.contry from {t} o", "no column 'contry'", "did you mean country?"),
        ("select foo(id) from {t}", "foo does not exist", None),
        ("select * from read_csv('/etc/passwd')", "disabled", None),
    ],
)
def test_mistakes_are_named(topic: Topic, text: str, said: str, hint: str | None):
    fill(topic)
    with pytest.raises(SqlError, match=said) as refused:
        topic.asked(text)
    assert hint is None or hint in str(refused.value.hint)


def test_a_column_is_missed_where_values_have_no_members(topic: Topic):
    topic.send("text")
    with pytest.raises(SqlError, match="no column 'amount'") as refused:
        topic.asked("select amount from {t}")
    assert f"the values of {topic.name} are text" in str(refused.value.hint)


def test_a_column_is_missed_where_there_is_no_record_to_tell_columns_from(topic: Topic):
    with pytest.raises(SqlError, match="no column 'amount'") as refused:
        topic.asked("select amount from {t}")
    assert f"{topic.name} holds no record" in str(refused.value.hint)


@pytest.mark.parametrize("text", ["select count(*) from {t}", "describe {t}"])
def test_a_choice_for_a_topic_that_is_not_there_is_no_choice_for_nothing(topic: Topic, text: str):
    with pytest.raises(SqlError, match="there is no topic") as refused:
        topic.asked(text, value_format={f"{topic.name}x": "json"})
    assert refused.value.hint == f"did you mean {topic.name}?"


def test_a_topic_that_is_not_there_is_named_with_one_that_is(topic: Topic):
    with pytest.raises(SqlError, match="there is no topic") as refused:
        topic.asked(f'select * from "{topic.name}x"')
    assert refused.value.hint == f"did you mean {topic.name}?"


def test_a_value_that_is_broken_is_no_end_of_the_query(topic: Topic):
    fill(topic)
    topic.send(b"\xff\xfe", '{"id": "ten"}', None, partition=0)
    found = topic.asked("select count(*) as n, count(id) as ids from {t}", value_schema="id BIGINT")
    assert found == [{"n": 13, "ids": 10}]


def run(topic: Topic, *arguments: str) -> None:
    parser = argparse.ArgumentParser()
    command.configure(parser)
    args = parser.parse_args(["-b", topic.bootstrap, *arguments])
    args.handler(args)


def test_the_command_prints_text_json_and_csv(topic: Topic, capsys: pytest.CaptureFixture[str]):
    fill(topic)
    topic.send(None, key=b"\xff", partition=0)
    text = f'select id, country, key from "{topic.name}" where id is null or id > 8 order by id'
    run(topic, text)
    assert capsys.readouterr().out.splitlines() == [
        "id  country  key",
        " 9  de       k9",
        " -  -        base64:/w==",
    ]
    run(topic, "--format", "json", "--key-format", "bytes", text)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"id": 9, "country": "de", "key": "k9"},
        {"id": None, "country": None, "key": "base64:/w=="},
    ]
    run(topic, "--format", "csv", "--key-format", f"{topic.name}=bytes", "--time", text)
    printed = capsys.readouterr()
    assert printed.out.splitlines() == ["id,country,key", "9,de,k9", ",,base64:/w=="]
    assert printed.err.startswith("2 rows, the first after ")


def test_the_command_explains_as_json(topic: Topic, capsys: pytest.CaptureFixture[str]):
    fill(topic)
    run(topic, "--explain", "--format", "json", f'select id from "{topic.name}" where partition = 1 and offset > 2')
    told = json.loads(capsys.readouterr().out)
    assert told["engine"] == "duckdb"
    assert told["topics"] == [
        {
            "table": "penstock_0",
            "topic": topic.name,
            "offsets": 2,
            "ranges": [{"partition": 1, "start": 3, "end": 5}],
            "columns": ["partition", "offset", "id"],
            "of_records": ["value", "partition", "offset"],
        }
    ]


def test_the_command_prints_spans_of_time_for_people(topic: Topic, capsys: pytest.CaptureFixture[str]):
    run(topic, "--format", "csv", "select interval '1 month -2 days', interval '90.5 seconds', interval '-1 second'")
    assert capsys.readouterr().out.splitlines()[1] == "1 month -2 days,00:01:30.5,-00:00:01"


def test_the_command_says_what_is_wrong_and_what_to_do(topic: Topic):
    with pytest.raises(Failure, match="there is no topic 'nothing'") as refused:
        run(topic, "select * from nothing")
    assert refused.value.hint is not None


def taken(batches: Iterator[Any], count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while len(found) < count:
        found += next(batches).to_pylist()
    return found


def test_a_continuous_result_is_history_and_then_what_arrives(topic: Topic):
    fill(topic)
    rows = stream(topic.bootstrap, f'select id from "{topic.name}" where id % 2 = 1')
    assert sorted(row["id"] for row in taken(rows, 5)) == [1, 3, 5, 7, 9]
    topic.send(order(10), order(11), partition=0)
    assert taken(rows, 1) == [{"id": 11}]


def test_a_continuous_result_without_its_history_has_what_arrives(topic: Topic):
    fill(topic)
    rows = stream(topic.bootstrap, f'select id from "{topic.name}" where timestamp > now()')
    # The question is asked by now; the rows that follow are younger.
    topic.send(order(10), order(11), partition=0)
    assert taken(rows, 2) == [{"id": 10}, {"id": 11}]


def test_a_limit_ends_a_continuous_result(topic: Topic):
    fill(topic)
    assert sum(batch.num_rows for batch in stream(topic.bootstrap, f'select id from "{topic.name}" limit 7')) == 7


def test_groups_are_told_again_when_they_change(topic: Topic):
    fill(topic)
    text = f'select country, count(*) as n, avg(id) as middle from "{topic.name}" group by country'
    rows = stream(topic.bootstrap, text)
    assert sorted(taken(rows, 2), key=str) == [
        {"country": "de", "n": 5, "middle": 5.0},
        {"country": "fr", "n": 5, "middle": 4.0},
    ]
    topic.send(order(10), partition=1)
    assert taken(rows, 1) == [{"country": "fr", "n": 6, "middle": 5.0}]


def test_groups_know_headers_and_what_is_divided_by_nothing(topic: Topic):
    topic.send(order(1), order(2), partition=0, headers={"trace": "a"})
    text = f"select header('trace') as trace, sum(id) / 0 as none from \"{topic.name}\" group by header('trace')"
    assert taken(stream(topic.bootstrap, text), 1) == [{"trace": "a", "none": None}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("select distinct id from {t}", "DISTINCT"),
        ("select id from {t} order by id", "ORDER BY"),
        ("select a.id from {t} a join {t} b using (id)", "a join"),
        ("select row_number() over () from {t}", "a window function"),
        ("select id from {t} where id in (select id from {t})", "a subquery|one topic"),
        ("select median(id) from {t}", "cannot be merged"),
        ("select id from {t} as of offset 5", "AS OF ends"),
        ("show tables", "answered once"),
    ],
)
def test_what_has_no_continuous_result_is_refused_at_once(topic: Topic, text: str, said: str):
    fill(topic)
    with pytest.raises(SqlError, match=said) as refused:
        stream(topic.bootstrap, text.format(t=f'"{topic.name}"'))
    assert refused.value.hint is not None


def test_an_engine_that_is_not_there_is_named(topic: Topic):
    with pytest.raises(SqlError, match="no engine 'ducdb'") as refused:
        topic.asked("select 1", engine="ducdb")
    assert refused.value.hint == "did you mean duckdb?"
