"""What `penstock table` refuses before it begins, and what its help knows without loading tables."""

from __future__ import annotations

import struct

import pytest

from penstock.cli import table
from penstock.cli.main import main
from penstock.client import Producer
from penstock.tables.key_formats import KEY_FORMATS
from penstock.tables.value_formats import VALUE_FORMATS


def test_the_help_knows_the_formats_there_are():
    around = ("", "windowed:", "session:")
    assert {f"{one}{name}" for one in around for name in table.KEY_FORMATS} == set(KEY_FORMATS)
    assert set(table.VALUE_FORMATS) == set(VALUE_FORMATS)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["serve", "orders", "-X", "linger.ms=5"], 2, "-X linger.ms: tables know security.protocol, sasl.* and ssl.*"),
        (["serve", "orders", "orders"], 2, "named twice"),
        (["serve", "orders", "-b", "localhost:1"], 1, "nothing listens on localhost:1"),
        (["get", "orders", "key", "-b", "localhost:1"], 1, "nothing listens on localhost:1"),
        (["get", "orders", "key", "--url", "http://localhost:1"], 1, "no answer from http://localhost:1"),
        (["serve", "orders", "--key-format", "utf16"], 2, "invalid choice"),
    ],
)
def test_what_cannot_be_done_is_told_with_the_next_step(arguments, code, text, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["table", *arguments]) == code
    assert text in capfd.readouterr().err


def test_a_key_that_is_none_of_its_format_is_told(kafka_topic, kafka_bootstrap_servers, capfd, tmp_path):
    arguments = ["table", "get", kafka_topic, "seven", "--key-format", "int64", "--dir", str(tmp_path)]
    assert main([*arguments, "-b", kafka_bootstrap_servers]) == 1
    assert "'seven' is no number" in capfd.readouterr().err


def test_what_a_pipeline_counts_in_sessions_is_shown_as_a_number(kafka_topic, kafka_bootstrap_servers, capfd, tmp_path):
    with Producer(kafka_bootstrap_servers) as producer:
        producer.send(kafka_topic, struct.pack(">q", 3), key=b"alice" + struct.pack(">qq", 30, 10)).result(10)
    formats = ["--key-format", "session:utf8", "--value-format", "int64", "--dir", str(tmp_path)]
    assert main(["table", "get", kafka_topic, "alice@10-30", *formats, "-b", kafka_bootstrap_servers]) == 0
    assert capfd.readouterr().out == "3\n"


def test_a_damaged_store_is_told(kafka_topic, kafka_bootstrap_servers, capfd, tmp_path):
    place = tmp_path / kafka_topic
    place.mkdir()
    (place / "data.mdb").write_bytes(b"x" * 10_000)
    assert main(["table", "get", kafka_topic, "k", "--dir", str(tmp_path), "-b", kafka_bootstrap_servers]) == 1
    assert "is damaged" in capfd.readouterr().err
