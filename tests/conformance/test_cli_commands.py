"""The commands against a real broker, as a user types them."""

import uuid

import pytest

from penstock.client import Consumer
from tests.conformance.cli_shell import Shell


@pytest.fixture
def shell(kafka_bootstrap_servers, capfd, monkeypatch):
    return Shell(kafka_bootstrap_servers, capfd, monkeypatch)


@pytest.fixture
def name():
    return f"cli-{uuid.uuid4().hex[:10]}"


def test_a_topics_life(shell, name):
    assert shell("topic", "create", name, "-p", "2", "-c", "retention.ms=60000") == f"created {name}\n"
    assert "already exists" in (shell("topic", "create", name, code=1), shell.err)[1]
    shell("topic", "create", name, "--if-not-exists")
    assert [t["partitions"] for t in shell.json("topic", "ls", name)] == [2]
    (described,) = shell.json("topic", "describe", name)
    assert described["config"] == {"retention.ms": "60000"}
    assert [p["end_offset"] for p in described["partitions"]] == [0, 0]
    shell("topic", "alter", name, "--set", "cleanup.policy=compact", "--unset", "retention.ms", "--partitions", "3")
    assert len(shell.json("topic", "partitions", name)) == 3
    shown = {c["name"]: c["value"] for c in shell.json("topic", "config", name, "cleanup.policy", "retention.ms")}
    assert shown["cleanup.policy"] == "compact"
    assert shown["retention.ms"] == "604800000"
    assert "would delete" in shell("topic", "delete", name, "--dry-run")
    shell("topic", "delete", name, code=1)
    assert "--yes" in shell.err
    assert shell("topic", "delete", name, "--yes") == f"deleted {name}\n"
    shell("topic", "delete", name, "--yes", code=1)
    assert "there is no topic" in shell.err
    shell("topic", "delete", name, "--yes", "--if-exists")


def test_values_may_come_behind_options(shell, kafka_topic):
    assert shell("produce", kafka_topic, "-k", "key", "one", "two") == f"{kafka_topic}-0: 2 records at 0..1\n"
    assert shell("consume", "-o", "start", "-n", "2", kafka_topic, "-f", "%k=%v\\n") == "key=one\nkey=two\n"


def test_produce_and_consume(shell, kafka_topic):
    assert (
        shell("produce", kafka_topic, "one", "two", "-k", "key", "-H", "h:1") == f"{kafka_topic}-0: 2 records at 0..1\n"
    )
    shell("produce", kafka_topic, "-K:", stdin=b"a:1\nb:2\n")
    shell("produce", kafka_topic, "-K:", "-Z", "-z", "zstd", "--acks", "1", stdin=b"c:\n")
    assert shell("consume", kafka_topic, "-e", "-f", r"%o %k %v %h\n", "-Z") == (
        "0 key one h=1\n1 key two h=1\n2 a 1 \n3 b 2 \n4 c NULL \n"
    )
    assert shell("consume", kafka_topic, "-o", "-2", "-e", "-f", r"%o\n") == "3\n4\n"
    assert shell("consume", kafka_topic, "-o", "+1", "-n", "2") == "two\n1\n"
    assert shell("consume", kafka_topic, "-o", "1..3") == "two\n1\n"
    assert shell("consume", kafka_topic, "-o", "@-1h", "-n", "1") == "one\n"
    assert shell("consume", kafka_topic, "-o", "end..end") == ""
    assert shell("consume", kafka_topic, "-e", "--filter", "key=[ab]", "--filter", "value=2") == "2\n"
    assert shell("consume", kafka_topic, "-e", "--filter", "header.h=1", "-n", "1") == "one\n"
    records = shell.lines("consume", kafka_topic, "-e")
    assert records[0]["headers"] == [{"key": "h", "value": "1"}]
    assert records[4]["value"] is None


def test_json_lines_go_from_topic_to_topic(shell, kafka_topics):
    source, target = kafka_topics(), kafka_topics()
    shell("produce", source, "-f", "json", stdin=b'{"key": "k", "value": {"a": 1}, "timestamp_ms": 1700000000000}\n')
    copied = shell("consume", source, "-e", "-f", "json")
    shell("produce", target, "-f", "json", stdin=copied.encode())
    (found,) = shell.lines("consume", target, "-e")
    assert (found["key"], found["value"], found["timestamp_ms"]) == ("k", '{"a":1}', 1_700_000_000_000)


@pytest.mark.kafka_topic(partitions=3)
def test_partitions_are_chosen(shell, kafka_topic):
    assert shell("produce", kafka_topic, "x", "-p", "2") == f"{kafka_topic}-2: 1 record at 0\n"
    assert shell("consume", kafka_topic, "-p", "2", "-e") == "x\n"
    assert shell("consume", kafka_topic, "-p", "1", "-e") == ""
    shell("produce", kafka_topic, "x", "-p", "7", code=1)
    assert "0 to 2" in shell.err
    shell("consume", kafka_topic, "-p", "7", "-e", code=2)


def test_tail_shows_where_records_are(shell, kafka_topic):
    shell("produce", kafka_topic, "x", "-k", "k")
    assert shell("tail", kafka_topic, "-o", "start", "-n", "1").endswith(f"{kafka_topic}-0@0 k x\n")


def test_a_missing_topic_says_what_to_do(shell, name):
    shell("consume", name, "-e", code=1)
    assert name in shell.err
    assert "penstock topic ls" in shell.err


def test_a_group_of_the_consumer_protocol_is_shown_as_such(shell, kafka_topic, name):
    config = {"group.protocol": "consumer"}
    with Consumer(shell.servers, topics=[kafka_topic], group=name, config=config) as consumer:
        while not consumer.assignment():
            consumer.poll(0.2)
        (listed,) = [g for g in shell.json("group", "ls") if g["group"] == name]
        assert (listed["type"], listed["state"]) == ("consumer", "stable")
        described = shell.json("group", "describe", name)
        assert (described["type"], described["assignor"], len(described["members"])) == ("consumer", "uniform", 1)
        (member,) = shell.json("group", "members", name)
        assert member["assignment"] == [[kafka_topic, 0]]
    assert [g["state"] for g in shell.json("group", "ls") if g["group"] == name] == ["empty"]


def test_a_groups_life(shell, kafka_topic, name):
    shell("produce", kafka_topic, *map(str, range(10)))
    assert shell("consume", kafka_topic, "-g", name, "-o", "start", "-n", "4") == "0\n1\n2\n3\n"
    assert [g["state"] for g in shell.json("group", "ls") if g["group"] == name] == ["empty"]
    (lag,) = shell.json("group", "lag", name)
    assert (lag["committed"], lag["end"], lag["lag"]) == (4, 10, 6)
    described = shell.json("group", "describe", name)
    assert (described["lag"], described["members"]) == (6, [])
    assert shell.json("group", "members", name) == []
    planned = shell.json("group", "reset", name, "--to", "start", "--dry-run")
    assert planned["offsets"][0]["after"] == 0
    assert shell.json("group", "lag", name)[0]["committed"] == 4
    for place, after in (("end", 10), ("shift:-3", 7), ("2", 2), ("-1", 9), ("@-1h", 0)):
        shell("group", "reset", name, "--to", place, "--yes")
        assert shell.json("group", "lag", name)[0]["committed"] == after
    shell("group", "reset", name, "--to", "end", code=1)
    assert "--yes" in shell.err
    shell("group", "offset-delete", name, "-t", kafka_topic, "--yes")
    shell("group", "reset", name, "--to", "5", "-t", f"{kafka_topic}:0", "--yes")
    assert shell.json("group", "lag", name, "--total") == [{"group": name, "topic": kafka_topic, "lag": 5}]
    shell("group", "delete", name, "--yes")
    shell("group", "describe", name, code=1)
    assert "penstock group ls" in shell.err


def test_configurations(shell, kafka_topic):
    shell("config", "set", "topic", kafka_topic, "retention.ms=5000", "segment.bytes=1048576")
    assert {c["name"]: c["value"] for c in shell.json("config", "get", "topic", kafka_topic)}["retention.ms"] == "5000"
    shell("config", "unset", "topic", kafka_topic, "retention.ms")
    assert shell.json("config", "get", "topic", kafka_topic, "retention.ms")[0]["source"] in ("default", "static")
    shell("config", "set", "topic", kafka_topic, "no.such.thing=1", code=1)
    assert "no.such.thing" in shell.err
    shell("config", "get", "topic", kafka_topic, "no.such.thing", code=1)
    broker = shell.json("cluster")["brokers"][0]["id"]
    assert shell.json("config", "get", "broker", str(broker), "num.partitions")[0]["value"]


def test_a_broker_that_is_not_there_is_told_from_one_that_does_not_answer(shell):
    known = shell.json("cluster")["brokers"][0]["id"]
    for arguments in (("get", "broker", "4711"), ("set", "broker", "4711", "log.cleaner.threads=1")):
        shell("config", *arguments, code=1)
        assert "there is no broker 4711" in shell.err
        assert str(known) in shell.err and "penstock cluster" in shell.err


def test_trim_and_offsets(shell, kafka_topic):
    shell("produce", kafka_topic, *map(str, range(10)))
    assert shell.json("topic", "trim", kafka_topic, "-o", "4", "--dry-run")[0]["after"] == 4
    shell("topic", "trim", kafka_topic, "-o", "4", "--yes")
    assert shell.json("topic", "offsets", kafka_topic, "--at", "-1h") == [
        {"topic": kafka_topic, "partition": 0, "start": 4, "end": 10, "at": 4}
    ]
    assert shell("consume", kafka_topic, "-o", "start", "-n", "1") == "4\n"


def test_benchmarks_measure(shell, kafka_topic):
    sent = shell.json("bench", "produce", "-t", kafka_topic, "-m", "2000", "-s", "50")
    assert sent["records"] == 2000
    assert sent["latency_p50_ms"] <= sent["latency_p99_ms"]
    assert shell.json("bench", "consume", "-t", kafka_topic, "-m", "2000")["records"] == 2000
    measured = shell.json("bench", "e2e", "-t", kafka_topic, "-m", "50", "--rate", "0")
    assert measured["records"] == 50
    assert 0 < measured["latency_p50_ms"] < 5000


def test_every_json_answer_is_json(shell, kafka_topic):
    for command in (["cluster"], ["topic", "ls"], ["topic", "offsets", kafka_topic], ["group", "ls"], ["group", "lag"]):
        assert isinstance(shell.json(*command), list | dict)
