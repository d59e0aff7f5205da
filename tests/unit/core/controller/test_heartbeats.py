"""Sessions of brokers: what a heartbeat leads to, when a session ends."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.controller.heartbeats import Heartbeats
from penstock.protocol.generated.broker_heartbeat_request import BrokerHeartbeatRequest
from tests.unit.core.controller.moves import NODE, cluster, directory, orders, partition, replayed

SESSION_MS, RECONNECT_MS = 9_000, 500


def beats(image, now_ms: int = 0, reconnect_ms: int = RECONNECT_MS) -> Heartbeats:
    return Heartbeats(image, now_ms, session_timeout_ms=SESSION_MS, reconnect_ms=reconnect_ms)


def heartbeat(broker: int, offset: int = 1_000, epoch: int | None = None, **wants: object) -> BrokerHeartbeatRequest:
    epoch = 10 + broker if epoch is None else epoch
    return BrokerHeartbeatRequest(broker_id=broker, broker_epoch=epoch, current_metadata_offset=offset, **wants)


class Cluster:
    """An image and its sessions, moved on by heartbeats."""

    def __init__(self, *partitions, alive=(1, 2, 3, 4)) -> None:
        self.image = cluster(*partitions, alive=alive)
        self.beats = beats(self.image)
        self.now_ms = 0
        for one in alive:
            self.beats.touch(self.image, heartbeat(one, offset=0), 0)

    def beat(self, request: BrokerHeartbeatRequest):
        self.beats.touch(self.image, request, self.now_ms)
        if not self.beats.wants_change(self.image, request):
            return self.beats.answer(self.image, request)
        result = self.beats.decide(self.image, NODE, request, end_offset=500)
        self.image = replayed(self.image, result.records)
        return result.response


def told(answer) -> tuple[bool, bool]:
    return answer.is_fenced, answer.should_shut_down


def test_a_fenced_broker_is_unfenced_once_it_has_seen_its_registration():
    world = Cluster(partition([3, 1], [], eligible=[3], last_known_eligible=[3]), alive=(1,))
    early = world.beat(heartbeat(3, offset=12))
    assert (told(early), early.is_caught_up) == ((True, False), False)
    assert told(world.beat(heartbeat(3, offset=13, want_fence=True))) == (True, False)
    assert told(world.beat(heartbeat(3, offset=13))) == (False, False)
    assert (world.image.brokers[3].fenced, orders(world.image).leader) == (False, 3)


def test_an_ordinary_heartbeat_changes_nothing():
    world = Cluster(partition([1, 2]))
    before = world.image
    assert told(world.beat(heartbeat(1))) == (False, False)
    assert world.image is before


def test_a_broker_that_leads_nothing_may_go_at_once():
    world = Cluster(partition([1, 2]))
    assert told(world.beat(heartbeat(3, want_shut_down=True))) == (True, True)
    assert world.image.brokers[3].fenced


def test_a_broker_that_leads_goes_when_every_active_broker_knows_who_leads_now():
    world = Cluster(partition([1, 2]))
    assert told(world.beat(heartbeat(1, want_shut_down=True))) == (False, False)
    assert world.image.brokers[1].in_controlled_shutdown
    assert orders(world.image).leader == 2
    assert told(world.beat(heartbeat(1, want_shut_down=True))) == (False, False)
    for other in (2, 3, 4):
        world.beat(heartbeat(other, offset=499))
    assert told(world.beat(heartbeat(1, want_shut_down=True))) == (False, False)
    for other in (2, 3, 4):
        world.beat(heartbeat(other, offset=502))
    assert told(world.beat(heartbeat(1, want_shut_down=True))) == (True, True)
    assert told(world.beat(heartbeat(1, want_shut_down=True))) == (True, True)


def test_the_only_broker_may_go_though_nobody_takes_over():
    world = Cluster(partition([1], [1]), alive=(1,))
    assert told(world.beat(heartbeat(1, want_shut_down=True))) == (False, False)
    assert orders(world.image).leader == -1
    assert told(world.beat(heartbeat(1, want_shut_down=True))) == (True, True)


def test_a_broker_may_ask_to_be_fenced():
    world = Cluster(partition([1, 2]))
    assert told(world.beat(heartbeat(1, want_fence=True))) == (True, False)
    assert (world.image.brokers[1].fenced, orders(world.image).leader) == (True, 2)


def test_a_broker_that_alone_holds_something_stays_so_that_it_can_be_read_and_others_lead_the_rest():
    world = Cluster(partition([1, 2]), partition([1, 2], [1]), alive=(1, 2))
    assert told(world.beat(heartbeat(1, want_fence=True))) == (False, False)
    assert not world.image.brokers[1].fenced
    assert [orders(world.image, index).leader for index in (0, 1)] == [2, 1]
    before = world.image
    world.beat(heartbeat(1, want_fence=True))
    assert [orders(world.image, index) for index in (0, 1)] == [orders(before, index) for index in (0, 1)]


def test_of_two_brokers_that_ask_to_be_fenced_one_goes_on():
    world = Cluster(partition([1, 2]), alive=(1, 2))
    assert told(world.beat(heartbeat(1, want_fence=True))) == (True, False)
    assert told(world.beat(heartbeat(2, want_fence=True))) == (False, False)
    assert orders(world.image).leader == 2


def test_a_broker_that_was_fenced_because_it_asked_for_it_is_unfenced_when_it_asks_no_more():
    world = Cluster(partition([1, 2]))
    world.beat(heartbeat(1, want_fence=True))
    assert told(world.beat(heartbeat(1, want_fence=True))) == (True, False)
    assert told(world.beat(heartbeat(1))) == (False, False)


def test_a_lost_disk_is_told_with_a_heartbeat():
    world = Cluster(partition([1, 2]))
    assert told(world.beat(heartbeat(1, offline_log_dirs=[directory(1)]))) == (False, False)
    assert orders(world.image).leader == 2


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (heartbeat(1, epoch=10), ErrorCode.STALE_BROKER_EPOCH),
        (heartbeat(9), ErrorCode.BROKER_ID_NOT_REGISTERED),
    ],
)
def test_another_incarnation_is_not_heard(request_, code):
    world = Cluster()
    with pytest.raises(KafkaError) as refusal:
        world.beats.touch(world.image, request_, 0)
    assert refusal.value.code is code


def test_a_silent_broker_is_stale_after_the_session_timeout_and_the_longest_silent_first():
    world = Cluster()
    for broker, at_ms in ((1, 100), (2, 50), (3, 8_000), (4, 8_000)):
        world.beats.touch(world.image, heartbeat(broker), at_ms)
    assert world.beats.next_check_ms(world.image) == 50 + SESSION_MS
    assert world.beats.stale(world.image, 49 + SESSION_MS) is None
    assert world.beats.stale(world.image, 100 + SESSION_MS) == 2


def test_a_fenced_broker_is_not_fenced_again():
    world = Cluster(alive=(1,))
    world.beats.touch(world.image, heartbeat(2), 0)
    assert world.beats.stale(world.image, 10 * SESSION_MS) == 1


def test_a_broker_without_its_connection_must_be_back_soon():
    world = Cluster()
    world.beats.touch(world.image, heartbeat(1), 1_000)
    world.beats.lost_connection(1, 11, 2_000)
    assert world.beats.stale(world.image, 2_000 + RECONNECT_MS - 1) is None
    assert world.beats.stale(world.image, 2_000 + RECONNECT_MS) == 1
    world.beats.touch(world.image, heartbeat(1), 2_000 + RECONNECT_MS)
    assert world.beats.stale(world.image, 2_000 + RECONNECT_MS) is None


def test_the_connection_of_an_earlier_incarnation_says_nothing():
    world = Cluster()
    world.beats.lost_connection(1, 10, 0)
    assert world.beats.stale(world.image, RECONNECT_MS) is None


def test_lost_connections_can_be_left_to_the_session_timeout():
    image = cluster()
    sessions = beats(image, reconnect_ms=-1)
    sessions.lost_connection(1, 11, 0)
    assert sessions.stale(image, SESSION_MS - 1) is None
    assert sessions.stale(image, SESSION_MS) == 1


def test_a_new_controller_gives_brokers_a_while_to_find_it():
    image = cluster()
    sessions = beats(image, now_ms=100)
    assert sessions.stale(image, 100 + 3 * RECONNECT_MS - 1) is None
    assert sessions.stale(image, 100 + 3 * RECONNECT_MS) is not None


def test_only_a_broker_that_this_controller_has_heard_keeps_another_from_its_id():
    image = cluster(alive=(1, 2))
    sessions = beats(image)
    assert not sessions.is_alive(image, 1, 0)
    sessions.touch(image, heartbeat(1), 0)
    sessions.touch(image, heartbeat(3), 0)
    assert sessions.is_alive(image, 1, SESSION_MS - 1)
    assert not sessions.is_alive(image, 1, SESSION_MS)
    assert not sessions.is_alive(image, 3, 0), "it is fenced"
    assert not sessions.is_alive(image, 9, 0)
