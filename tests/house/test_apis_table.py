"""`broker/apis.py` is the one table of what is served: every row has its file, every file its row, and they agree."""

from __future__ import annotations

import ast
import re
from types import SimpleNamespace

import pytest

from penstock.broker.apis import controller_served, served
from penstock.broker.handlers.cluster import api_versions
from penstock.broker.network.table import Row, Table
from penstock.broker.services import Features
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.api_versions_request import ApiVersionsRequest
from penstock.protocol.registry import APIS
from tests.house.tracked import tracked, tree

HANDLERS = "src/penstock/broker/handlers/"
OPEN_TO_ALL = ("ApiVersions", "DescribeCluster", "GetTelemetrySubscriptions", "PushTelemetry")
"""No right is needed, as in Kafka: what a client may do is found out by asking."""
ADVERTISED_LOWER = ("Produce",)
"""Advertised from version 0 though served from 3: librdkafka looks there for compression."""

ROWS = [pytest.param(row, "broker", id=row.name) for row in served().rows]
ROWS += [pytest.param(row, "controller", id=f"{row.name}, controller") for row in controller_served().rows]


def _path(row: Row) -> str:
    return f"src/{row.module.replace('.', '/')}.py"


@pytest.mark.parametrize(("row", "_listener"), ROWS)
def test_a_handler_opens_with_its_name_and_the_versions_served(row: Row, _listener: str):
    docstring = ast.get_docstring(tree(_path(row)))
    assert docstring is not None
    said = re.match(r"(\w+) (\d+)(?:-(\d+))?\b", docstring)
    assert said is not None, f"{_path(row)} does not open with NAME LOW-HIGH"
    name, low, high = said[1], int(said[2]), int(said[3] or said[2])
    assert (name, low, high) == (row.name, row.min_version, row.max_version)


@pytest.mark.parametrize(("row", "listener"), ROWS)
def test_what_is_served_is_a_stable_version_of_the_protocol(row: Row, listener: str):
    api = APIS[row.key]
    assert api.min_version <= row.min_version <= row.max_version <= api.latest_stable
    assert listener in api.listeners


def test_every_handler_stands_in_a_table():
    handlers = sorted(path for path in tracked(HANDLERS, ".py") if _handles(path))
    assert sorted({_path(row) for row in [*served().rows, *controller_served().rows]}) == handlers


def test_an_api_of_both_listeners_is_one_and_the_same():
    """But for Fetch: what a controller is asked for is the metadata log, which no client reads."""
    controllers = {row.key: row for row in controller_served().rows if row.name != "Fetch"}
    for row in served().rows:
        other = controllers.get(row.key, row)
        assert (row.module, row.acl, row.forwarded) == (other.module, other.acl, other.forwarded)


def test_what_brokers_pass_on_is_served_by_controllers():
    passed_on = [row.key for row in served().rows if row.forwarded]
    assert [row.key for row in controller_served().rows if row.forwarded] == passed_on


def test_a_right_is_asked_for_unless_the_api_is_open_to_all():
    assert tuple(row.name for row in served().rows if row.acl is None) == OPEN_TO_ALL


@pytest.mark.parametrize("table", [served(), controller_served()])
def test_the_table_is_in_the_order_of_the_keys(table: Table):
    keys = [row.key for row in table.rows]
    assert keys == sorted(keys)


def test_api_versions_tells_the_table_and_nothing_else():
    session = SimpleNamespace(table=served(), services=SimpleNamespace(features=lambda: Features({}, {}, 0)))
    answer = api_versions.handle(session, RequestHeader(18, 0, 1, "test"), ApiVersionsRequest())
    told = [(one.api_key, one.min_version, one.max_version) for one in answer.api_keys]
    assert told == [(row.key, row.advertised_from, row.max_version) for row in served().rows]


def test_only_produce_is_advertised_lower_than_it_is_served():
    lower = [(row.name, row.advertised_from) for row in served().rows if row.advertised_from != row.min_version]
    assert lower == [(name, 0) for name in ADVERTISED_LOWER]


def _handles(path: str) -> bool:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return any(isinstance(node, kinds) and node.name == "handle" for node in tree(path).body)
