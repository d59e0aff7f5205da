"""ShareFetch and ShareAcknowledge over the wire: who gets which record, and when."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from penstock.base.errors import ErrorCode
from penstock.client import Admin, Producer
from penstock.core.share.requests import ShareKey
from penstock.protocol.generated.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from penstock.protocol.generated.share_fetch_request import ForgottenTopic
from penstock.testing import Cluster
from penstock.wire import blocking
from penstock.wire.produce import Settings
from tests.conformance.share_members import (
    ACCEPT,
    REJECT,
    RELEASE,
    RENEW,
    Place,
    begin,
    configure,
    ranges,
    values,
)

FAST = {"group.share.min.record.lock.duration.ms": "1000"}
"""Locks may be short, and are where a test waits for one to end: in the others nobody is to lose what it holds."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(FAST) as running:
        yield running


@pytest.fixture
def place(cluster: Cluster, topic_name: str) -> Iterator[Place]:
    made = Place(cluster, topic_name)
    yield made
    made.client.close()


def test_a_record_is_with_one_member_until_it_is_accepted_and_then_with_none(place: Place):
    place.write("a", "b", "c")
    with place.member("one") as one, place.member("two") as two:
        row = one.row()
        assert (ranges(row), values(row)) == ([(0, 2, 1)], [b"a", b"b", b"c"])
        assert two.fetch() == []
        assert one.acknowledge((0, 2, [ACCEPT])) == 0
        assert (one.fetch(), two.fetch()) == ([], [])


def test_acknowledgements_that_come_with_a_fetch_are_told_of(place: Place):
    place.write("a", "b")
    with place.member("one") as one:
        one.fetch()
        place.write("c")
        row = one.row([(0, 1, [ACCEPT])])
        assert (row.acknowledge_error_code, ranges(row), values(row)) == (0, [(2, 2, 1)], [b"c"])
        row = one.row([(0, 5, [ACCEPT])])
        assert row.acknowledge_error_code == ErrorCode.INVALID_REQUEST, "offset 5 was never acquired"


def test_each_group_has_every_record(place: Place):
    place.write("a")
    begin(place.client, ShareKey("another", place.topic_id, 0), 0)
    with place.member("one") as one, place.member("one", "another") as other:
        assert one.fetch() == other.fetch() == [(0, 0, 1)]


def test_a_fetch_that_waits_is_answered_by_what_is_written_released_or_left_behind(place: Place):
    with place.member("one") as one, place.member("two") as two:
        assert (one.fetch(), two.fetch()) == ([], [])
        got: list[list[tuple[int, int, int]]] = []
        for happens in (
            lambda: place.write("a", "b"),
            lambda: one.acknowledge((0, 0, [RELEASE])),
            lambda: one.client.close(),
        ):
            waiter = one if not got else two
            waiting = threading.Thread(target=lambda waiter=waiter: got.append(waiter.fetch(max_wait_ms=60_000)))
            waiting.start()
            happens()
            waiting.join(20)
        assert got == [[(0, 1, 1)], [(0, 0, 2)], [(1, 1, 2)]]


def test_a_lock_that_ends_gives_the_record_to_another(place: Place):
    configure(place.client, place.group, **{"share.record.lock.duration.ms": "1000"})
    place.write("a")
    with place.member("one") as one, place.member("two") as two:
        assert one.fetch() == [(0, 0, 1)]
        assert two.fetch(max_wait_ms=30_000) == [(0, 0, 2)]
        assert one.acknowledge((0, 0, [ACCEPT])) == ErrorCode.INVALID_RECORD_STATE
        assert two.acknowledge((0, 0, [ACCEPT])) == 0


def test_a_renewed_lock_outlives_the_first(place: Place):
    configure(place.client, place.group, **{"share.record.lock.duration.ms": "2000"})
    place.write("a")
    with place.member("one") as one, place.member("two") as two:
        began = time.monotonic()
        one.fetch()
        waiting = threading.Thread(target=lambda: two.fetch(max_wait_ms=60_000))
        waiting.start()
        while time.monotonic() < began + 1:
            assert one.acknowledge((0, 0, [RENEW]), is_renew_ack=True) == 0
        waiting.join(30)
        assert time.monotonic() > began + 2.9
    assert two.epoch == 1


def test_a_renewal_may_come_with_a_fetch_that_fetches_nothing(place: Place):
    place.write("a")
    with place.member("one") as one:
        one.fetch()
        place.write("b")
        nothing = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
        row = one.row([(0, 0, [RENEW])], is_renew_ack=True, **nothing)
        assert (row.acknowledge_error_code, ranges(row)) == (0, [])
        assert one.call([(0, 0, [RENEW])], is_renew_ack=True).error_code == ErrorCode.INVALID_REQUEST
        assert one.acknowledge((0, 0, [RENEW])) == ErrorCode.INVALID_REQUEST, "the request does not say so"


def test_a_group_may_forbid_renewals(place: Place):
    configure(place.client, place.group, **{"share.renew.acknowledge.enable": "false"})
    place.write("a")
    with place.member("one") as one:
        one.fetch()
        assert one.acknowledge((0, 0, [RENEW]), is_renew_ack=True) == ErrorCode.INVALID_RECORD_STATE


def test_a_record_is_delivered_no_more_often_than_the_group_allows(place: Place):
    configure(place.client, place.group, **{"share.delivery.count.limit": "2"})
    place.write("poison", "good")
    with place.member("one") as one:
        assert one.fetch() == [(0, 1, 1)]
        assert one.fetch([(0, 1, [RELEASE, ACCEPT])]) == [(0, 0, 2)]
        assert one.fetch([(0, 0, [RELEASE])]) == []


def test_a_rejected_record_is_not_delivered_again(place: Place):
    place.write("a", "b")
    with place.member("one") as one:
        one.fetch()
        assert one.fetch([(0, 1, [REJECT, RELEASE])]) == [(1, 1, 2)]


def test_the_end_of_a_session_releases(place: Place):
    place.write("a", "b")
    with place.member("one") as one, place.member("two") as two:
        one.fetch()
        assert one.call([(0, 0, [ACCEPT])], share_session_epoch=-1).error_code == 0
        assert two.fetch() == [(1, 1, 2)]
        assert one.acknowledge((1, 1, [ACCEPT])) == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_what_was_acknowledged_is_remembered_over_a_restart(topic_name: str):
    with Cluster(FAST) as cluster:
        place = Place(cluster, topic_name)
        place.write("a", "b", "c")
        with place.member("one") as one:
            one.fetch()
            assert one.acknowledge((0, 1, [ACCEPT, RELEASE])) == 0
        place.client.close()
        cluster.restart()
        with place.member("two") as two:
            assert two.fetch(max_wait_ms=10_000) == [(1, 2, 2)]


def test_a_group_begins_where_its_configuration_says(place: Place):
    place.write("old")
    for group, reset in (("early", "earliest"), ("late", "latest"), ("lately", "by_duration:PT1H")):
        configure(place.client, f"{place.name}-{group}", **{"share.auto.offset.reset": reset})
        begin(place.client, ShareKey(f"{place.name}-{group}", place.topic_id, 0), -1)
    early, late, lately = (place.member("one", f"{place.name}-{group}") for group in ("early", "late", "lately"))
    with early, late, lately:
        assert (early.fetch(), late.fetch(), lately.fetch()) == ([(0, 0, 1)], [], [(0, 0, 1)])
        place.write("new")
        assert late.fetch() == [(1, 1, 1)]


def test_where_a_group_begins_is_remembered_before_anything_is_acknowledged(topic_name: str):
    with Cluster(FAST) as cluster:
        place = Place(cluster, topic_name)
        place.write("old")
        begin(place.client, ShareKey("late", place.topic_id, 0), -1)
        with place.member("one", "late") as one:
            assert one.fetch() == []
        place.write("written while the group is away")
        place.client.close()
        cluster.restart()
        with place.member("one", "late") as one:
            assert one.fetch() == [(1, 1, 1)]


def test_a_start_that_is_moved_while_nobody_consumes_holds(place: Place):
    place.write("a", "b", "c")
    with place.member("one") as one:
        assert one.fetch(max_records=1) == [(0, 2, 1)]
        one.call(share_session_epoch=-1)
    begin(place.client, ShareKey(place.group, place.topic_id, 0), 2, state_epoch=2)
    with place.member("two") as two:
        assert two.fetch() == [(2, 2, 1)]


def test_records_that_are_deleted_are_passed_over(place: Place):
    place.write("a", "b")
    place.write("c")
    with place.member("one") as one:
        assert one.fetch(max_records=1) == [(0, 1, 1)]
        partition = DeleteRecordsPartition(partition_index=0, offset=1)
        topic = DeleteRecordsTopic(name=place.name, partitions=[partition])
        place.client.call(DeleteRecordsRequest(topics=[topic], timeout_ms=5_000), 2)
        assert one.fetch([(0, 1, [RELEASE])]) == [(1, 1, 2), (2, 2, 1)]


def test_whole_batches_are_acquired_unless_the_limit_is_strict(place: Place):
    place.write("a", "b", "c")
    with place.member("one") as one, place.member("two") as two:
        row = one.row(max_records=2, share_acquire_mode=1)
        assert (ranges(row), values(row)) == ([(0, 1, 1)], [b"a", b"b"])
        assert two.fetch(max_records=1) == [(2, 2, 1)]


def test_no_more_records_are_out_than_a_group_may_lock(place: Place):
    configure(place.client, place.group, **{"share.partition.max.record.locks": "100"})
    for _ in range(3):
        place.write(*["x"] * 60)
    with place.member("one") as one:
        assert one.fetch() == [(0, 119, 1)]
        assert one.fetch() == []
        assert one.fetch([(0, 29, [ACCEPT])]) == [(120, 179, 1)]


def test_a_partition_that_is_forgotten_gives_nothing(place: Place):
    with place.member("one") as one:
        assert one.fetch() == []
        place.write("a")
        gone = ForgottenTopic(topic_id=place.topic_id, partitions=[0])
        assert one.fetch(topics=[], forgotten_topics_data=[gone]) == []
        assert one.fetch(topics=[]) == []
        assert one.fetch() == [(0, 0, 1)]


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(1, ErrorCode.SHARE_SESSION_NOT_FOUND), (-1, ErrorCode.SHARE_SESSION_NOT_FOUND)],
)
def test_a_session_that_was_never_begun_is_not_found(place: Place, epoch: int, code: ErrorCode):
    with place.member("one") as one:
        assert one.call(share_session_epoch=epoch).error_code == code
        assert one.acknowledge((0, 0, [ACCEPT]), share_session_epoch=epoch) == code


def test_requests_out_of_turn_are_refused(place: Place):
    with place.member("one") as one:
        one.fetch()
        assert one.call(share_session_epoch=2).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        assert one.acknowledge(share_session_epoch=7) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        assert one.acknowledge(share_session_epoch=0) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        assert one.fetch() == []


def test_there_are_as_many_sessions_as_the_broker_allows(topic_name: str):
    with Cluster({"group.share.max.share.sessions": "1"}) as cluster:
        place = Place(cluster, topic_name)
        place.write("a")
        with place.member("one") as one, place.member("two") as two:
            assert one.fetch() == [(0, 0, 1)]
            assert two.call().error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
            one.call(share_session_epoch=-1)
            assert two.fetch() == [(0, 0, 2)]
        place.client.close()


def test_only_the_owner_may_say_something_of_a_record(place: Place):
    place.write("a")
    with place.member("one") as one, place.member("two") as two:
        one.fetch()
        two.fetch()
        assert two.acknowledge((0, 0, [ACCEPT])) == ErrorCode.INVALID_RECORD_STATE
        assert one.acknowledge((0, 0, [ACCEPT])) == 0


def test_records_of_transactions_that_were_aborted_are_kept_from_those_who_want_committed_ones(
    cluster: Cluster, place: Place
):
    configure(place.client, place.group, **{"share.isolation.level": "read_committed"})
    with blocking.Client(cluster.bootstrap_servers) as client:
        producer = blocking.Producer(client, Settings(transactional_id=place.name))
        producer.init_transactions()
        for text, end in ((b"aborted", producer.abort), (b"committed", producer.commit)):
            producer.begin()
            producer.send(place.name, text)
            producer.flush()
            with place.member("early") as early:
                assert early.fetch() == [], "nobody knows yet how it ends"
            end()
    with place.member("one") as one:
        row = one.row(max_wait_ms=5_000)
        assert (ranges(row), values(row)) == ([(2, 2, 1)], [b"committed"])
        assert one.fetch([(2, 2, [ACCEPT])]) == []
    begin(place.client, ShareKey("uncommitted", place.topic_id, 0), 0)
    with place.member("one", "uncommitted") as one:
        assert values(one.row()) == [b"aborted", b"committed"]


def test_another_leader_goes_on_where_the_last_one_was(topic_name: str):
    with Cluster(FAST, nodes=3) as cluster, Admin(cluster.bootstrap_servers) as admin:
        place = Place(cluster, topic_name, copies=3)
        with Producer(cluster.bootstrap_servers) as producer:
            for text in (b"a", b"b", b"c"):
                producer.send(topic_name, text)
        # All three have acknowledged the records: whoever is asked knows the topic.
        leader = admin.topic(topic_name).partitions[0].leader
        assert leader is not None
        with place.member("one", at=leader) as one:
            assert one.fetch(max_wait_ms=10_000) == [(0, 2, 1)]
            assert one.acknowledge((0, 1, [ACCEPT, RELEASE])) == 0
            follower = 1 if leader != 1 else 2
            with place.member("two", at=follower) as two:
                row = two.row()
                assert (row.error_code, row.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, leader)
        place.client.close()
        cluster.stop_node(leader)
        while (now := admin.topic(topic_name).partitions[0].leader) in (None, leader):
            pass
        assert now is not None
        with place.member("two", at=now) as two:
            found: list[tuple[int, int, int]] = []
            while not found:
                row = two.row(max_wait_ms=1_000)
                found = [] if row is None or row.error_code else ranges(row)
            assert [offset for first, last, _ in found for offset in range(first, last + 1)] == [1, 2]
