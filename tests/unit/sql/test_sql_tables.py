"""Columns of a topic: told from a sample, named, and made of records."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pyarrow as pa
import pytest

from penstock.schemas.json_format import Json
from penstock.schemas.plain import BYTES, LONG, TEXT
from penstock.sql.formats import guess_by_schema
from penstock.sql.inference import json_objects, object_type
from penstock.sql.sampling import guess, infer_json
from penstock.sql.tables import TopicTable


def seen(*objects: dict[str, Any]) -> dict[str, str]:
    kind = object_type(objects)
    return {kind.field(at).name: str(kind.field(at).type) for at in range(kind.num_fields)}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "int64"),
        ([1, 2.5], "double"),
        ([2**70], "double"),
        ([True, None], "bool"),
        (["a"], "string"),
        ([None], "string"),
        ([[]], "list<item: string>"),
        ([[1], [2.5]], "list<item: double>"),
        ([{"b": 1}, {"c": "x"}], "struct<b: int64, c: string>"),
        ([1, "a"], "string"),
        ([{}], "string"),
        ([True, 1], "string"),
        ([{"b": 1, "B": 2}], "struct<b: int64>"),
    ],
)
def test_types_are_told_from_a_sample(values: list[Any], kind: str):
    assert seen(*({"a": value} for value in values)) == {"a": kind}


def test_members_come_in_the_order_in_which_they_were_seen():
    assert list(seen({"b": 1, "a": 2}, {"c": 3, "a": 4})) == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ([b'{"a": 1}', None, b'{"b": 2}'], "json"),
        ([b'{"a": 1}', b"text"], "text"),
        ([b"[1]"], "text"),
        ([b"caf\xc3\xa9\n"], "text"),
        ([bytes(8)], "bytes"),
        ([b"\xff"], "bytes"),
        ([None], "bytes"),
        ([], "bytes"),
        ([b"{}"], "text"),
    ],
)
def test_formats_are_told_from_a_sample(data: list[bytes | None], name: str):
    assert guess(pa.chunked_array([pa.array(data, pa.binary())]), objects=True).name == name


def test_json_that_was_chosen_bears_values_that_are_none():
    found = infer_json(pa.chunked_array([pa.array([b"junk", b'{"a": 1}', None], pa.binary())]))
    assert found is not None and found.type == pa.struct([pa.field("a", pa.int64())])


def test_the_format_of_a_schema_is_told_from_its_text():
    assert guess_by_schema('{"type": "record", "name": "A", "fields": []}') == "avro"
    assert guess_by_schema('{"type": "object"}') == "json"
    assert guess_by_schema('syntax = "proto3"; message A { }') == "protobuf"
    assert guess_by_schema("id BIGINT, name STRING") == "json"


def table(*objects: dict[str, Any]) -> TopicTable:
    return TopicTable("t", TEXT, Json(object_type(objects)))


def test_members_whose_names_are_taken_get_the_side_in_front():
    names = [one.name for one in table({"id": 1, "offset": 2, "Key": 3, "ID": 4}).columns]
    assert names[8:] == ["id", "value_offset", "value_Key", "value_ID"]


def test_members_of_keys_have_key_in_front():
    kind = pa.struct([pa.field("id", pa.int64())])
    assert [one.name for one in TopicTable("t", Json(kind), Json(kind)).columns][8:] == ["id", "key_id"]


def test_a_plain_format_is_the_type_of_the_column_itself():
    found = {one.name: one.kind for one in TopicTable("t", LONG, BYTES).columns}
    assert (found["key"], found["value"]) == (pa.int64(), pa.binary())


def rows(values: list[bytes | None], names: list[str], columns: TopicTable) -> list[dict[str, Any]]:
    batch = pa.record_batch(
        {
            "key": pa.array([b"k"] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
            "offset": pa.array(range(len(values)), pa.int64()),
        }
    )
    reading = pickle.loads(pickle.dumps(columns.reading(names)))
    found: list[dict[str, Any]] = reading.apply(batch).to_pylist()
    return found


def test_a_member_that_does_not_fit_is_null_and_the_others_stay():
    columns = table({"id": 1, "tags": ["x"], "inner": {"a": 1}})
    values = [b'{"id": "one", "tags": ["y"], "inner": {"a": 2}}', b"junk", None, b'{"id": 4}']
    assert rows(values, ["id", "tags", "inner"], columns) == [
        {"id": None, "tags": ["y"], "inner": {"a": 2}},
        {"id": None, "tags": None, "inner": None},
        {"id": None, "tags": None, "inner": None},
        {"id": 4, "tags": None, "inner": None},
    ]


def test_whether_a_member_can_be_read_does_not_depend_on_the_others_that_are_asked_for():
    columns = table({"id": 1, "name": "a"})
    values = [b'{"id": "bad", "name": "good"}']
    alone = rows(values, ["name"], columns)[0]["name"]
    together = rows(values, ["id", "name"], columns)[0]["name"]
    assert alone == together == "good"


def test_several_types_in_one_place_are_kept_as_json():
    columns = table({"a": 1}, {"a": [1, "x"]})
    values: list[bytes | None] = [json.dumps({"a": one}).encode() for one in (1, [1, "x"], "t")]
    assert [row["a"] for row in rows(values, ["a"], columns)] == ["1", '[1,"x"]', '"t"']


def test_only_what_is_asked_for_is_read_of_a_record():
    columns = table({"id": 1})
    assert columns.reading(["offset", "id"]).sources == ["value", "offset"]
    assert columns.reading([]).sources == ["offset"]
    assert columns.reading(["offset"]).is_plain
    assert not columns.reading(["key"]).is_plain


def test_an_object_is_no_text_and_no_list():
    assert json_objects([b'{"a": 1}', b"[]"]) is None
    assert json_objects([b'{"a": 1}']) == [{"a": 1}]
