"""Controllers that would be voters and do not say where they listen."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode
from penstock.protocol.generated.add_raft_voter_request import AddRaftVoterRequest, Listener
from tests.bad_input.raw_client import RawClient


@pytest.mark.parametrize(
    "host",
    ["", " ", "[", "\udcff", "a\0b", "nobody,localhost", "x" * 16_000],
    ids=["empty", "blank", "bracket", "not-utf-8", "zero", "several", "long"],
)
def test_a_voter_that_cannot_be_reached(client: RawClient, host: str) -> None:
    request = AddRaftVoterRequest(
        cluster_id=None,
        timeout_ms=1_000,
        voter_id=7,
        voter_directory_id=bytes(range(16)),
        listeners=[Listener(name="CONTROLLER", host=host, port=1)],
    )
    answer = client.call(request, 1)
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "node 7" in (answer.error_message or "")
