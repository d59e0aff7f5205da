"""Schemas from a registry, over real HTTP from a registry of twenty lines."""

from __future__ import annotations

import base64
import json
import pickle
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pyarrow as pa
import pytest

from penstock.pipeline.formats import formats_of, sink_formats_of
from penstock.pipeline.registry import Registry, RegistryError
from penstock.schemas.errors import SchemaError
from penstock.schemas.specs import Spec
from penstock.schemas.wire_format import framed

OLD = '{"type":"record","name":"Order","fields":[{"name":"id","type":"int"}]}'
NEW = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"n","type":"int","default":7}]}'
MONEY = 'syntax = "proto3"; package bank; message Money { int64 cents = 1; }'
BILL = 'syntax = "proto3"; import "money.proto"; message Bill { bank.Money sum = 1; }'


class FakeRegistry:
    """Answers from a dict; a path that is not in it is 40401. Keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[str] = []
        self.bodies: list[Any] = []
        self.password: str | None = None
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                fake.asked.append(f"{self.command} {self.path}")
                known = self.headers.get("Authorization")
                if fake.password and known != f"Basic {base64.b64encode(fake.password.encode()).decode()}":
                    return self.answer(401, {"error_code": 401, "message": "Unauthorized"})
                found = fake.answers.get(self.path)
                if found is None:
                    return self.answer(404, {"error_code": 40401, "message": "Subject not found."})
                return self.answer(200, found)

            def do_POST(self) -> None:
                fake.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.do_GET()

            def answer(self, status: int, body: Any) -> None:
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *told: Any) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    fake = FakeRegistry()
    thread = threading.Thread(target=fake.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield fake
    fake.server.shutdown()
    thread.join()
    fake.server.server_close()


@pytest.fixture
def orders(registry: FakeRegistry) -> FakeRegistry:
    """A subject with two versions."""
    registry.answers = {
        "/subjects/orders-value/versions/latest": {"subject": "orders-value", "version": 2, "id": 12, "schema": NEW},
        "/schemas/ids/11": {"schema": OLD},
        "/schemas/ids/12": {"schema": NEW},
    }
    return registry


def avro_options(url: str, **more: str) -> dict[str, str]:
    return {"subscribe": "orders", "valueFormat": "avro", "schema.registry.url": url} | more


def test_old_and_new_values_are_read_with_the_latest_schema(orders: FakeRegistry):
    formats = pickle.loads(pickle.dumps(formats_of(avro_options(orders.url, errorColumn="why"))))
    rows = pa.record_batch({"value": pa.array([framed(11, b"\x02"), framed(12, b"\x04\x06"), framed(13, b""), None])})
    read = formats.apply(rows)
    assert read.column("value").to_pylist() == [{"id": 1, "n": 7}, {"id": 2, "n": 3}, None, None]
    assert read.column("why").to_pylist()[2].startswith("value: schema 13: GET /schemas/ids/13 at http://127.0.0.1")
    formats.apply(rows)
    assert orders.asked.count("GET /schemas/ids/11") == 1


def test_a_registry_that_is_gone_stops_the_task_and_makes_no_nulls(orders: FakeRegistry):
    formats = formats_of(avro_options(orders.url))
    elsewhere = Registry("http://127.0.0.1:9", timeout_s=1.0)
    gone = type(formats)(formats.key, formats.value, "PERMISSIVE", None, elsewhere)
    with pytest.raises(RegistryError, match=r"cannot be reached: .*refused.*is schema.registry.url right"):
        gone.apply(pa.record_batch({"value": pa.array([framed(11, b"\x02")])}))


def test_the_next_url_is_tried_where_one_does_not_answer(orders: FakeRegistry):
    assert Registry(f"http://127.0.0.1:9, {orders.url}/").schema(11).schema == OLD


def test_a_given_schema_is_the_readers_and_the_registry_has_the_writers(orders: FakeRegistry):
    reader = '{"type":"record","name":"Order","fields":[{"name":"id","type":"double"}]}'
    formats = formats_of(avro_options(orders.url, valueSchema=reader))
    read = formats.apply(pa.record_batch({"value": pa.array([framed(12, b"\x04\x06")])}))
    assert read.column("value").to_pylist() == [{"id": 2.0}]


def test_the_texts_that_a_schema_refers_to_are_fetched(registry: FakeRegistry):
    references = [{"name": "money.proto", "subject": "money", "version": 3}]
    told = {"schemaType": "PROTOBUF", "schema": BILL, "references": references}
    registry.answers = {
        "/subjects/a%2Fb/versions/latest": told | {"id": 5, "version": 1},
        "/schemas/ids/5": told,
        "/subjects/money/versions/3": {"schemaType": "PROTOBUF", "schema": MONEY, "id": 4, "version": 3},
    }
    formats = formats_of({"valueFormat": "protobuf", "schema.registry.url": registry.url, "valueSubject": "a/b"})
    read = formats.apply(pa.record_batch({"value": pa.array([framed(5, b"\0\x0a\x02\x08\x05")])}))
    assert read.column("value").to_pylist() == [{"sum": {"cents": 5}}]


def test_a_password_goes_along_and_is_never_shown(orders: FakeRegistry):
    orders.password = "me:secret:with:colons"
    with pytest.raises(RegistryError, match=r"refused GET .*HTTP 401.*basic.auth.user.info") as refused:
        formats_of(avro_options(orders.url.replace("://", "://me:wrong@")))
    assert "wrong" not in str(refused.value)
    formats_of(avro_options(orders.url, **{"schema.registry.basic.auth.user.info": orders.password}))
    formats_of(avro_options(orders.url.replace("://", "://me:secret%3Awith%3Acolons@")))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"subscribe": "a,b"}, "Give valueSubject"),
        ({"subscribe": "nosuch"}, r"GET /subjects/nosuch-value/versions/latest .*: Subject not found. \(code 40401\)"),
        ({"valueFormat": "json"}, "valueFormat is json, but the registry has avro for orders-value"),
        ({"schema.registry.url": "localhost:8081"}, "schema.registry.url is 'localhost:8081'; it is like http"),
    ],
)
def test_what_the_registry_cannot_answer_is_said(orders: FakeRegistry, options: dict[str, str], said: str):
    with pytest.raises((SchemaError, RegistryError), match=said):
        formats_of(avro_options(orders.url) | options)


def test_something_else_than_a_registry_is_found_out(registry: FakeRegistry):
    registry.answers = {"/schemas/ids/1": b"<html>"}
    with pytest.raises(RegistryError, match="is no schema registry"):
        Registry(registry.url).schema(1)


def test_a_sink_registers_its_schema_and_frames_what_it_writes(registry: FakeRegistry):
    registry.answers = {"/subjects/orders-value/versions": {"id": 21}}
    rows = pa.record_batch({"value": pa.array([{"id": 1}, None])})
    options = {"topic": "orders", "valueFormat": "avro", "schema.registry.url": registry.url}
    written = sink_formats_of(options, rows.schema).encode(rows)
    assert written.column("value").to_pylist() == [framed(21, b"\x02\x02"), None]
    assert json.loads(registry.bodies[0]["schema"])["fields"][0]["name"] == "id"
    assert Registry(registry.url).register("orders-value", Spec("protobuf", MONEY)) == 21
    assert registry.bodies[1]["schemaType"] == "PROTOBUF"
