"""Configurations of a broker that runs: what is changed through the API holds at once, and after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.broker.embedded import Embedded
from penstock.protocol.generated.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.bad_input.raw_client import Closed, RawClient

BROKER = 4
SET, DELETE = 0, 1


def alter(client: RawClient, name: str, value: str | None, *, broker: str = "") -> int:
    config = AlterableConfig(name=name, config_operation=DELETE if value is None else SET, value=value)
    resource = AlterConfigsResource(resource_type=BROKER, resource_name=broker, configs=[config])
    answer = client.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    code: int = answer.responses[0].error_code
    return code


def can_connect(address: tuple[str, int]) -> bool:
    try:
        with RawClient(address) as another:
            another.call(IncrementalAlterConfigsRequest(), 1)
    except (OSError, Closed):
        return False
    return True


@pytest.mark.parametrize("broker", ["", "1"])
def test_the_bound_on_connections_changes_while_the_broker_runs(tmp_path: Path, broker: str):
    embedded = Embedded({}, str(tmp_path))
    host, _, port = embedded.start().rpartition(":")
    address = (host, int(port))
    with RawClient(address) as client:
        assert can_connect(address)
        assert alter(client, "max.connections.per.ip", "1", broker=broker) == 0
        assert not can_connect(address)
        assert alter(client, "max.connections.per.ip", "2", broker=broker) == 0
        assert can_connect(address)
    embedded.stop()


def test_what_was_set_holds_after_a_restart(tmp_path: Path):
    first = Embedded({}, str(tmp_path))
    host, _, port = first.start().rpartition(":")
    with RawClient((host, int(port))) as client:
        assert alter(client, "max.connections.per.ip", "1") == 0
    first.stop()
    again = Embedded({}, str(tmp_path))
    host, _, port = again.start().rpartition(":")
    with RawClient((host, int(port))) as client:
        assert not can_connect((host, int(port)))
        assert alter(client, "max.connections.per.ip", None) == 0
        assert can_connect((host, int(port)))
    again.stop()
