"""Share fetches and acknowledgements that are none: sessions, members, batches, limits."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode
from penstock.protocol.generated.share_acknowledge_request import ShareAcknowledgeRequest
from penstock.protocol.generated.share_fetch_request import ShareFetchRequest
from tests.bad_input.raw_client import RawClient, frame_body
from tests.bad_input.watched_broker import WatchedBroker
from tests.conformance.share_members import ACCEPT, Place

FAR = 2**63 - 1
ACKNOWLEDGEMENTS = {
    "backwards": [(5, 4, [ACCEPT])],
    "overlapping": [(0, 1, [ACCEPT]), (1, 2, [ACCEPT])],
    "without a type": [(0, 0, [])],
    "too many types": [(0, 0, [ACCEPT, ACCEPT])],
    "too few types": [(0, 2, [ACCEPT, ACCEPT])],
    "an unknown type": [(0, 0, [5])],
    "a negative type": [(0, 0, [-1])],
    "a renewal that is not announced": [(0, 0, [4])],
    "below zero": [(-5, -1, [ACCEPT])],
    "to the end of all offsets": [(0, FAR, [ACCEPT])],
    "past what was acquired": [(3, 9, [ACCEPT])],
}


class At:
    """Where a place is: as a cluster of one."""

    def __init__(self, broker: WatchedBroker) -> None:
        self.bootstrap_servers = broker.bootstrap


@pytest.fixture
def place(broker: WatchedBroker, request: pytest.FixtureRequest) -> Place:
    name = f"share-{abs(hash(request.node.name))}"
    made = Place(At(broker), name)  # type: ignore[arg-type]  # all it needs is the address
    made.write("a", "b", "c")
    return made


@pytest.mark.parametrize("name", ACKNOWLEDGEMENTS)
def test_acknowledgements_that_make_no_sense(place: Place, name: str) -> None:
    with place.member("m") as member:
        member.fetch()
        code = member.acknowledge(*ACKNOWLEDGEMENTS[name])
        assert code == ErrorCode.INVALID_REQUEST
        row = member.row(ACKNOWLEDGEMENTS[name])
        assert row.acknowledge_error_code == ErrorCode.INVALID_REQUEST
        assert member.acknowledge((0, 2, [ACCEPT])) == 0, "nothing of it has happened"


def test_a_request_without_a_group_or_a_member(client: RawClient) -> None:
    for group, member in ((None, "m"), ("g", None), ("g", ""), ("g", "m" * 37)):
        for request in (ShareFetchRequest, ShareAcknowledgeRequest):
            for version in (1, 2):
                answer = client.call(request(group_id=group, member_id=member, share_session_epoch=1), version)
                assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_acknowledgements_in_the_first_request(place: Place) -> None:
    with place.member("m") as member:
        assert member.call([(0, 0, [ACCEPT])]).error_code == ErrorCode.INVALID_REQUEST
        assert member.fetch() == [(0, 2, 1)]


@pytest.mark.parametrize("epoch", [-2, -(2**31), 2**31 - 1, 7])
def test_epochs_that_nobody_expects(place: Place, epoch: int) -> None:
    with place.member("m") as member:
        assert member.call(share_session_epoch=epoch).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
        member.fetch()
        assert member.call(share_session_epoch=epoch).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH


@pytest.mark.parametrize("limits", [{"max_records": -5}, {"max_bytes": -1}, {"max_wait_ms": -1}, {"batch_size": -9}])
def test_limits_below_zero_do_no_harm(place: Place, limits: dict[str, int]) -> None:
    with place.member("m") as member:
        assert member.call(**limits).error_code == 0
        member.call(share_session_epoch=-1)
    with place.member("n") as other:
        assert other.fetch()[0][:2] == (0, 2)


def test_partitions_that_are_not_there(place: Place) -> None:
    with place.member("m") as member:
        member.partition = 99
        assert member.row().error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with place.member("n") as member:
        member.topic_id = b"\x07" * 16
        assert member.row().error_code == ErrorCode.UNKNOWN_TOPIC_ID
        assert member.acknowledge((0, 0, [ACCEPT])) == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_group_that_never_began_the_partition(place: Place) -> None:
    with place.member("m", "a group of which no coordinator knows") as member:
        assert member.row().error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert member.row().error_code == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("key", [78, 79])
def test_bodies_that_are_cut_off(client: RawClient, broker: WatchedBroker, key: int) -> None:
    client.send_frame(frame_body(key, 2, b"\x02g\x02m"))
    assert client.is_closed()
    assert broker.is_alive
