"""The HTTP interface, asked without a server."""

from __future__ import annotations

import json
import struct

import pytest

from penstock.client import Producer
from penstock.tables import AsOf, Table
from penstock.tables.follower import Progress
from penstock.tables.http import application
from penstock.tables.http_answers import Served
from penstock.tables.key_formats import key_format
from penstock.tables.service import LocalNamesOnly, is_local
from tests.unit.tables.asgi_client import Asgi


@pytest.fixture
def topic(kafka_topics):
    return kafka_topics(partitions=2, config={"cleanup.policy": "compact"})


@pytest.fixture
def serving(topic, opened):
    """`serving()` is a client of the table's interface."""

    def make(keys="utf8", values="auto", **arguments):
        return Asgi(application({topic: Served(opened(topic, **arguments), key_format(keys), values)}))

    return make


@pytest.fixture
def write(kafka_bootstrap_servers, topic):
    """Records of bytes."""

    def send(*records):
        with Producer(kafka_bootstrap_servers, config={"linger.ms": 0}) as producer:
            for key, value in records:
                producer.send(topic, value, key=key, partition=0)

    return send


def test_a_key(serving, topic, put):
    put(topic, partition=1, timestamp_ms=1_700_000_000_000, alice='{"balance": 10.50}')
    answer = serving()(f"/tables/{topic}/keys/alice")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json == {
        "key": "alice",
        "key_format": "utf8",
        "value": {"balance": 10.5},
        "content_type": "application/json",
        "partition": 1,
        "offset": 0,
        "timestamp_ms": 1_700_000_000_000,
    }
    assert b'"value":{"balance": 10.50}' in answer.body


def test_a_key_that_is_not_there(serving, topic):
    answer = serving()(f"/tables/{topic}/keys/nobody")
    assert answer.status == 404
    assert answer.json == {"error": {"code": "no_such_key", "message": f"table {topic} has no key 'nobody'"}}


def test_bytes_are_base64_and_can_be_had_as_they_are(serving, topic, write):
    write((b"a", b"\x00\xff"))
    ask = serving()
    assert ask(f"/tables/{topic}/keys/a").json["value"] == "AP8="
    raw = ask(f"/tables/{topic}/keys/a?raw=1")
    assert (raw.body, raw.headers["content-type"]) == (b"\x00\xff", "application/octet-stream")
    assert raw.headers["x-penstock-record"].startswith("0:0:")


@pytest.mark.parametrize(
    ("form", "path", "key"),
    [
        ("utf8", "a%2Fb%20c", b"a/b c"),
        ("utf8", "a/b", b"a/b"),
        ("utf8", "keys/keys/", b"keys/keys/"),
        ("utf8", "%C3%A9", "é".encode()),
        ("utf8", "", b""),
        ("base64", "_w", b"\xff"),
        ("int64", "-5", struct.pack(">q", -5)),
        ("windowed:utf8", "alice@60000", b"alice" + struct.pack(">q", 60_000)),
    ],
)
def test_keys_of_every_format(serving, topic, write, form, path, key):
    write((key, b"1"))
    assert serving()(f"/tables/{topic}/keys/{path}?key_format={form}").json["value"] == 1
    assert serving(form, directory="another")(f"/tables/{topic}/keys/{path}").json["key_format"] == form


def test_a_key_that_is_none_of_the_format_is_shown_as_base64(serving, topic, write):
    write((b"\xff", b"1"))
    (entry,) = serving()(f"/tables/{topic}/keys").json["entries"]
    assert (entry["key"], entry["key_format"]) == ("_w", "base64")


def test_unchanged_since(serving, topic, put):
    put(topic, partition=0, a="1")
    ask = serving()
    tag = ask(f"/tables/{topic}/keys/a").headers["etag"]
    answer = ask(f"/tables/{topic}/keys/a", headers={"If-None-Match": f'"x", W/{tag}'})
    assert (answer.status, answer.body, answer.headers["etag"]) == (304, b"", tag)
    written = put(topic, partition=0, a="2")
    answer = ask(f"/tables/{topic}/keys/a?min_offsets=0:{written[0]}", headers={"If-None-Match": tag})
    assert (answer.status, answer.json["value"]) == (200, 2)


def test_pages_of_a_range(serving, topic, put):
    put(topic, **{f"k{n}": str(n) for n in range(10)})
    ask = serving()
    seen, following = [], ""
    for _ in range(4):
        page = ask(f"/tables/{topic}/keys?from=k1&to=k8&limit=3{following}").json
        seen += [entry["key"] for entry in page["entries"]]
        if page["next"] is None:
            break
        following = f"&after={page['next']}"
    assert seen == ["k1", "k2", "k3", "k4", "k5", "k6", "k7"]
    assert page["next"] is None


def test_a_prefix(serving, topic, put):
    put(topic, ant="1", bee="2", beetle="3", cat="4")
    page = serving()(f"/tables/{topic}/keys?prefix=be").json
    assert [entry["key"] for entry in page["entries"]] == ["bee", "beetle"]


def test_all_windows_of_a_key(serving, topic, write):
    write(
        *((b"alice" + struct.pack(">q", start), b"1") for start in (0, 60_000, 120_000)), (b"bob\0\0\0\0\0\0\0\0", b"1")
    )
    page = serving("windowed:utf8")(f"/tables/{topic}/keys?prefix=alice").json
    assert [entry["key"] for entry in page["entries"]] == ["alice@0", "alice@60000", "alice@120000"]


def test_pages_of_numbers_are_in_their_order_negative_ones_first(serving, topic, write):
    write(*((struct.pack(">q", n), b"1") for n in range(-5, 6)))
    ask = serving("int64")
    seen, following = [], ""
    while following is not None:
        page = ask(f"/tables/{topic}/keys?from=-3&to=4&limit=3{following}").json
        assert len(page["entries"]) <= 3
        seen += [int(entry["key"]) for entry in page["entries"]]
        following = page["next"] and f"&after={page['next']}"
    assert seen == [-3, -2, -1, 0, 1, 2, 3]


def test_several_keys_at_one_moment(serving, topic, put):
    put(topic, a="1", b="2")
    body = json.dumps({"keys": ["b", "x", "a"]}).encode()
    answer = serving()(f"/tables/{topic}/get", method="POST", body=body)
    assert [entry and entry["value"] for entry in answer.json["entries"]] == [2, None, 1]


def test_how_far_a_table_is(serving, topic, put):
    put(topic, partition=0, a="1", b="2")
    ask = serving()
    found = ask(f"/tables/{topic}").json
    assert (found["state"], found["ready"], found["lag"], found["entries"]) == ("live", True, 0, 2)
    assert found["offsets"] == {"0": 2, "1": 0}
    assert found["cleanup_policy"] == "compact"
    assert [table["topic"] for table in ask("/tables").json["tables"]] == [topic]


def test_health_and_metrics(serving, topic, put):
    put(topic, a="1")
    ask = serving()
    assert (ask("/health").status, ask("/health").json) == (200, {"healthy": True, "tables": {topic: "live"}})
    ask(f"/tables/{topic}/keys/a")
    ask(f"/tables/{topic}/keys/b")
    text = ask("/metrics").body.decode()
    assert f'penstock_table_entries{{topic="{topic}"}} 1.0' in text
    assert 'penstock_table_requests_total{door="key",status="404"} 1.0' in text
    assert 'penstock_table_request_seconds_count{door="key"} 2.0' in text


class StillLoading:
    """What the interface asks a table before it looks anything up."""

    topic = "orders"
    progress = Progress(reached={0: 1}, ends={0: 42})

    def as_of(self):
        return AsOf({0: 1}, {0: 42}, 41, "loading", False)

    still_loading = Table.still_loading


def test_until_it_is_loaded_a_table_says_so():
    ask = Asgi(application({"orders": Served(StillLoading(), key_format("utf8"), "auto")}))
    answer = ask("/tables/orders/keys/a")
    assert answer.status == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.json["error"] == {
        "code": "loading",
        "message": "the table of orders is loading, 41 records are missing; try again later",
        "lag": 41,
        "state": "loading",
    }
    assert ask("/health").status == 503


@pytest.mark.parametrize(
    ("target", "status", "code"),
    [
        ("/tables/{}/keys/a?key_format=utf16", 400, "bad_key"),
        ("/tables/{}/keys/a?key_format=int64", 400, "bad_key"),
        ("/tables/{}/keys/%FF", 400, "bad_key"),
        ("/tables/{}/keys/a?value_format=xml", 400, "bad_request"),
        ("/tables/{}/keys/a?min_offset=1:2", 400, "bad_request"),
        ("/tables/{}/keys/a?min_offsets=1", 400, "bad_request"),
        ("/tables/{}/keys/a?min_offsets=9:1", 400, "bad_request"),
        ("/tables/{}/keys/a?wait_ms=99999999", 400, "bad_request"),
        ("/tables/{}/keys/a?min_offsets=0:99&wait_ms=1", 503, "not_reached"),
        ("/tables/{}/keys?limit=0", 400, "bad_request"),
        ("/tables/{}/keys?limit=100000", 400, "bad_request"),
        ("/tables/{}/keys?prefix=a&from=b", 400, "bad_request"),
        ("/tables/{}/keys?after=+", 400, "bad_key"),
        ("/tables/{}/keys?key_format=int64&prefix=1", 400, "bad_key"),
        ("/tables/nowhere/keys/a", 404, "no_such_table"),
        ("/nothing", 404, "no_such_path"),
    ],
)
def test_what_cannot_be_answered_says_why(serving, topic, target, status, code):
    answer = serving()(target.format(topic))
    assert (answer.status, answer.code) == (status, code)
    assert answer.json["error"]["message"]


@pytest.mark.parametrize(
    ("body", "status"), [(b"", 400), (b"[]", 400), (b'{"keys": [1]}', 400), (b'{"keys": [], "x": 1}', 400)]
)
def test_a_body_that_names_no_keys_is_refused(serving, topic, body, status):
    assert serving()(f"/tables/{topic}/get", method="POST", body=body).status == status


def test_too_many_keys_are_refused(serving, topic):
    body = json.dumps({"keys": ["k"] * 10_001}).encode()
    answer = serving()(f"/tables/{topic}/get", method="POST", body=body)
    assert (answer.status, answer.code) == (413, "too_large")
    assert serving(directory="another")(f"/tables/{topic}/get", method="POST", body=bytes(5_000_000)).status == 413


def test_nothing_is_written_this_way(serving, topic):
    ask = serving()
    for method in ("PUT", "POST", "DELETE", "PATCH", "OPTIONS"):
        answer = ask(f"/tables/{topic}/keys/a", method=method)
        assert (answer.status, answer.code) == (405, "method_not_allowed")
        assert "access-control-allow-origin" not in answer.headers


def test_a_local_server_does_not_answer_to_foreign_names(serving, topic):
    guarded = Asgi(LocalNamesOnly(serving()._app))
    assert guarded("/health", headers={"Host": "LOCALHOST:8084"}).status == 200
    assert guarded("/health", headers={"Host": "[::1]:8084"}).status == 200
    answer = guarded("/health", headers={"Host": "rebound.example:8084"})
    assert (answer.status, answer.code) == (403, "wrong_host")
    assert is_local("127.0.0.1")
    assert not is_local("0.0.0.0")
