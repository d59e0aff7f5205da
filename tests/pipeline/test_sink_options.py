"""What a write is told, and what it says of options and columns that cannot be."""

from __future__ import annotations

import pytest
from pyspark.sql.types import MapType, StringType, StructType

from penstock.pipeline.sink import columns, stream_writer, writer
from penstock.pipeline.sink.errors import SinkOptionError
from penstock.pipeline.sink.options import parse
from penstock.pipeline.source.schema import HEADERS
from penstock.wire.sasl import Credentials

WHERE = {"kafka.bootstrap.servers": "localhost:9092", "topic": "out"}
VALUE = StructType().add("value", "string")


def refusal(options: dict[str, str], *, streaming: bool = True) -> str:
    with pytest.raises(SinkOptionError) as refused:
        parse(options, streaming=streaming)
    return str(refused.value)


def test_a_stream_is_written_exactly_once_and_a_batch_when_asked_to():
    assert parse(WHERE, streaming=True).exactly_once
    assert not parse(WHERE, streaming=False).exactly_once
    assert parse({**WHERE, "exactlyonce": "True"}, streaming=False).exactly_once


def test_a_misspelt_option_is_named_with_the_one_that_was_meant():
    assert "did you mean 'exactlyOnce'" in refusal({**WHERE, "exactlyOnse": "true"})


def test_a_misspelt_setting_of_kafkas_producer_is_named_and_one_of_somebodys_own_is_not():
    assert "did you mean 'kafka.compression.type'" in refusal({**WHERE, "kafka.compresion.type": "gzip"})
    parse({**WHERE, "kafka.linger.ms": "5", "kafka.sampler.of.ours": "on"}, streaming=True)


def test_a_setting_that_is_no_number_is_told_before_a_task_is_started():
    assert "kafka.request.timeout.ms is a whole number, not '30s'" in refusal(
        {**WHERE, "kafka.request.timeout.ms": "30s"}
    )


def test_headers_are_written_unless_sparks_option_says_otherwise():
    schema = StructType([*VALUE]).add("headers", HEADERS.dataType)
    for said, written in ({}, True), ({"includeHeaders": "true"}, True), ({"includeHeaders": "false"}, False):
        parsed = parse({**WHERE, **said}, streaming=False)
        assert ("headers" in columns.check(schema, "out", parsed.include_headers)) is written


def test_what_spark_puts_among_the_options_is_no_mistake():
    parse({**WHERE, "checkpointLocation": "/tmp/x", "queryName": "counts"}, streaming=True)


def test_the_cluster_must_be_named():
    assert "kafka.bootstrap.servers" in refusal({"topic": "out"})


def test_less_than_all_acks_cannot_be_exactly_once():
    assert "exactlyOnce=false" in refusal({**WHERE, "acks": "1"})
    assert parse({**WHERE, "acks": "1", "exactlyOnce": "false"}, streaming=True).acks == "1"


def test_a_transactional_id_is_not_ours_to_take():
    assert "transactionalIdPrefix" in refusal({**WHERE, "kafka.transactional.id": "mine"})


def test_a_codec_that_kafka_does_not_have_is_refused():
    assert "zstd" in refusal({**WHERE, "compression": "rar"})
    assert parse({**WHERE, "kafka.compression.type": "lz4"}, streaming=True).client["compression.type"] == "lz4"


def test_a_value_must_be_there():
    with pytest.raises(SinkOptionError, match="no column 'value' among id"):
        stream_writer(WHERE, StructType().add("id", "long"), False)


def test_rows_must_have_a_topic_to_go_to():
    with pytest.raises(SinkOptionError, match="option topic"):
        stream_writer({"bootstrap": "localhost:9092"}, VALUE, False)
    stream_writer({"bootstrap": "localhost:9092"}, StructType([*VALUE]).add("topic", "string"), False)


def test_a_column_of_another_type_is_named_with_its_own():
    with pytest.raises(SinkOptionError, match="partition is int, not bigint"):
        columns.check(StructType([*VALUE]).add("partition", "long"), "out")
    with pytest.raises(SinkOptionError, match="headers is array<struct<key: string, value: binary>>"):
        columns.check(StructType([*VALUE]).add("headers", MapType(StringType(), StringType())), "out")


def test_other_columns_are_left_out():
    schema = StructType([*VALUE]).add("offset", "long").add("key", "binary").add("topic", "string")
    assert columns.check(schema, "out") == ("key", "value")


def test_a_topic_cannot_be_overwritten():
    with pytest.raises(SinkOptionError, match=r'mode\("append"\)'):
        writer(WHERE, VALUE, True)


def test_security_is_parsed_and_no_secret_is_shown():
    options = {
        **WHERE,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.username": "alice",
        "kafka.sasl.password": "hush-hush",
    }
    parsed = parse(options, streaming=True)
    assert parsed.security.credentials == Credentials("SCRAM-SHA-512", "alice", "hush-hush")
    assert "hush-hush" not in repr(parsed)
    assert not [name for name in parsed.client if "sasl" in name]


def test_security_that_cannot_be_followed_is_refused():
    said = refusal({**WHERE, "kafka.security.protocol": "SSL", "kafka.ssl.keystore.type": "PKCS12"})
    assert "kafka.ssl.keystore.type is PKCS12, and only PEM is read" in said
