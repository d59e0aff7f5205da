"""What becomes of partitions when brokers are fenced, shut down, unregistered, come back, or lose a disk."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode
from penstock.core.controller.brokers import (
    decide_controlled_shutdown,
    decide_fence_broker,
    decide_offline_directories,
    decide_register_broker,
    decide_unfence_broker,
    decide_unregister_broker,
)
from penstock.protocol.generated.broker_registration_request import BrokerRegistrationRequest, Feature
from penstock.protocol.generated.unregister_broker_request import UnregisterBrokerRequest
from tests.unit.core.controller.moves import ELR, NODE, UNCLEAN, cluster, directory, orders, partition, replayed

THREE = partition([1, 2, 3])


def registration(broker: int, previous_epoch: int) -> BrokerRegistrationRequest:
    features = [("metadata.version", 7, 30), (ELR, 0, 1)]
    return BrokerRegistrationRequest(
        broker_id=broker,
        cluster_id="c",
        incarnation_id=b"n" * 16,
        features=[Feature(name=n, min_supported_version=a, max_supported_version=b) for n, a, b in features],
        log_dirs=[directory(broker)],
        previous_broker_epoch=previous_epoch,
    )


def registered(image, broker: int, previous_epoch: int):
    result = decide_register_broker(image, NODE, registration(broker, previous_epoch), cluster_id="c", next_offset=50)
    assert result.response.broker_epoch == 50
    return replayed(image, result.records)


def test_a_fenced_broker_leads_nothing_and_is_in_no_isr():
    image = cluster(THREE, partition([2, 1, 3]), partition([4, 1]))
    after = replayed(image, decide_fence_broker(image, NODE, 1))
    assert after.brokers[1].fenced
    assert [(one.leader, one.isr) for one in after.topics["orders"].partitions.values()] == [
        (2, (2, 3)),
        (2, (2, 3)),
        (4, (4,)),
    ]


def test_unclean_elections_are_for_topics_that_allow_them():
    image = cluster(partition([1, 2], [1]), elr=False)
    assert orders(replayed(image, decide_fence_broker(image, NODE, 1))).leader == -1
    assert orders(replayed(image, decide_fence_broker(image, UNCLEAN, 1))).leader == 2


def test_a_broker_in_controlled_shutdown_hands_over_and_stays_registered():
    image = cluster(THREE)
    after = replayed(image, decide_controlled_shutdown(image, NODE, 1))
    assert (after.brokers[1].in_controlled_shutdown, after.brokers[1].fenced) == (True, False)
    assert (orders(after).leader, orders(after).isr) == (2, (2, 3))
    assert decide_controlled_shutdown(after, NODE, 1) == []


def test_a_clean_stop_keeps_a_broker_eligible():
    image = cluster(partition([1, 2], [1]))
    stopped = replayed(image, decide_fence_broker(image, NODE, 1))
    assert (orders(stopped).isr, orders(stopped).eligible) == ((), (1,))
    back = registered(stopped, 1, previous_epoch=11)
    assert orders(back).eligible == (1,)
    ready = replayed(back, decide_unfence_broker(back, NODE, 1))
    assert (orders(ready).leader, orders(ready).isr, orders(ready).leader_recovery_state) == (1, (1,), 0)


@pytest.mark.parametrize("previous_epoch", [-1, 10])
def test_a_broker_that_did_not_stop_cleanly_is_in_no_isr_and_no_elr(previous_epoch):
    image = cluster(partition([1, 2, 3]), partition([2, 3, 1], [2], eligible=[1]), partition([1], [1]))
    back = registered(image, 1, previous_epoch)
    for one in back.topics["orders"].partitions.values():
        assert 1 not in one.isr + one.eligible
        assert one.leader != 1
    ready = replayed(back, decide_unfence_broker(back, NODE, 1))
    assert (orders(ready, 2).leader, orders(ready, 2).leader_recovery_state) == (1, 1)


def test_a_broker_that_was_never_known_is_not_believed_either():
    image = cluster(partition([2, 3, 1], [2], eligible=[1]))
    gone = replayed(image, decide_unregister_broker(image, NODE, UnregisterBrokerRequest(broker_id=1)).records)
    assert orders(registered(gone, 1, previous_epoch=11)).eligible == ()


def test_without_elr_a_new_incarnation_leaves_the_isr_unless_it_is_the_last():
    image = cluster(THREE, partition([1, 2], [1]), elr=False)
    back = registered(image, 1, previous_epoch=-1)
    assert [(one.leader, one.isr) for one in back.topics["orders"].partitions.values()] == [(2, (2, 3)), (-1, (1,))]


def test_an_unregistered_broker_is_forgotten_and_leads_nothing():
    image = cluster(THREE)
    result = decide_unregister_broker(image, NODE, UnregisterBrokerRequest(broker_id=1))
    after = replayed(image, result.records)
    assert (1 in after.brokers, orders(after).leader, orders(after).isr) == (False, 2, (2, 3))
    again = decide_unregister_broker(after, NODE, UnregisterBrokerRequest(broker_id=1))
    assert (again.response.error_code, again.records) == (ErrorCode.BROKER_ID_NOT_REGISTERED, [])


def test_what_lies_on_a_lost_disk_is_led_by_others():
    image = cluster(THREE)
    assert decide_offline_directories(image, NODE, 1, [b"?" * 16]) == []
    after = replayed(image, decide_offline_directories(image, NODE, 1, [directory(1)]))
    assert (orders(after).leader, orders(after).isr) == (2, (2, 3))
