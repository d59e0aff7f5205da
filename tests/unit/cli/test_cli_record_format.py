"""How records are printed and read."""

import io
import json

import pytest

from penstock.cli.consume import parse_filter
from penstock.cli.failures import Failure, Usage
from penstock.cli.record_format import compile_format
from penstock.cli.record_input import Input, json_records, records
from penstock.client import Record

RECORD = Record("orders", 2, 17, 1_700_000_000_123, b"k", b"v\xff", (("a", b"1"), ("b", None)), leader_epoch=4)
NULLS = Record("orders", 0, 0, -1, None, None)


@pytest.mark.parametrize(
    ("template", "printed"),
    [
        (r"%t %p %o %k\n", b"orders 2 17 k\n"),
        (r"%v", b"v\xff"),
        (r"%s|%S|%K|%V", b"v\xff|2|1|2"),
        (r"%v{hex} %v{base64}", b"76ff dv8="),
        (r"%d %d{iso}", b"1700000000123 2023-11-14T22:13:20.123Z"),
        (r"%d{strftime[%Y]}", b"2023"),
        (r"%h", b"a=1,b="),
        (r"%h{%k:%v;}", b"a:1;b:;"),
        (r"%H %e %i %%", b"2 4 9 %"),
        (r"\t\x1e\\n", b"\t\x1e\\n"),
        ("raw", b"v\xff"),
    ],
)
def test_a_template(template, printed):
    assert compile_format(template)(RECORD, 9) == printed


def test_null_is_empty_unless_it_has_a_word():
    assert compile_format("%k,%v")(NULLS, 0) == b","
    assert compile_format("%k,%v", b"NULL")(NULLS, 0) == b"NULL,NULL"
    assert compile_format("%K %V %d{iso}")(NULLS, 0) == b"-1 -1 -"


@pytest.mark.parametrize("template", ["%q", "100%"])
def test_what_means_nothing_is_refused_at_once(template):
    with pytest.raises(Usage):
        compile_format(template)


def test_json_tells_what_is_not_text():
    found = json.loads(compile_format("json")(RECORD, 0))
    assert found["value"] == "dv8="
    assert found["value_encoding"] == "base64"
    assert found["key"] == "k"
    assert found["headers"] == [{"key": "a", "value": "1"}, {"key": "b", "value": None}]


def test_what_consume_prints_as_json_produce_reads_back():
    line = compile_format("json")(RECORD, 0)
    (found,) = json_records(io.BytesIO(line))
    assert (found.key, found.value, found.headers) == (RECORD.key, RECORD.value, RECORD.headers)
    assert found.timestamp_ms == RECORD.timestamp_ms


def test_json_objects_are_sent_as_json():
    (found,) = json_records(io.BytesIO(b'{"value": {"a": 1}, "headers": {"h": "x"}}\n\n'))
    assert found == Input(b'{"a":1}', headers=(("h", b"x"),))


@pytest.mark.parametrize("line", [b"{broken", b"[1]", b'{"key": 1}'])
def test_a_line_that_is_no_record_is_named(line):
    with pytest.raises(Failure, match="line 1"):
        list(json_records(io.BytesIO(line)))


@pytest.mark.parametrize(
    ("template", "stream", "found"),
    [
        (r"%v\n", b"a\nb", [Input(b"a"), Input(b"b")]),
        (r"%v\n", b"a\r\n\n", [Input(b"a"), Input(b"")]),
        (r"%k:%v\n", b"k:v:w\n", [Input(b"v:w", b"k")]),
        (r"%k\t%v\n", b"k\tv\n", [Input(b"v", b"k")]),
        (r"%v\x00", b"a\nb\x00c", [Input(b"a\nb"), Input(b"c")]),
        (r"%p %d %v\n", b"3 99 x\n", [Input(b"x", partition=3, timestamp_ms=99)]),
    ],
)
def test_a_layout_of_the_input(template, stream, found):
    assert list(records(io.BytesIO(stream), template, null=False)) == found


def test_empty_is_null_only_on_request():
    assert list(records(io.BytesIO(b"k:\n"), "%k:%v", null=False)) == [Input(b"", b"k")]
    assert list(records(io.BytesIO(b"k:\n"), "%k:%v", null=True)) == [Input(None, b"k")]


def test_a_line_that_does_not_follow_the_layout_is_shown():
    with pytest.raises(Failure, match="record 2"):
        list(records(io.BytesIO(b"a:1\nbroken\n"), "%k:%v", null=False))


def test_filters():
    assert parse_filter("key=k*")(RECORD)
    assert not parse_filter("key=x*")(RECORD)
    assert not parse_filter("key=*")(NULLS)
    assert parse_filter("value=v?")(RECORD)
    assert parse_filter("header.a=1")(RECORD)
    assert not parse_filter("header.z=*")(RECORD)
    with pytest.raises(Usage):
        parse_filter("offset=1")
