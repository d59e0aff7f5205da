"""A broker that did not stop cleanly leads in a new epoch."""

from __future__ import annotations

from penstock.core.controller.brokers import decide_unfence_broker
from penstock.core.metadata.delta import Delta
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import Broker, Image, Partition, Topic

TOPIC = Topic("t", b"t" * 16, {0: Partition((1,), (1,), 1, 4, 0), 1: Partition((2,), (2,), 2, 4, 0)})
IMAGE = Image(
    features={"metadata.version": 30},
    brokers={1: Broker(1, 9, bytes(16), (), (), None, fenced=True)},
    topics={"t": TOPIC},
    topics_by_id={TOPIC.id: TOPIC},
)


def epochs_after(*, lead_again: bool) -> list[int]:
    delta = Delta(IMAGE)
    for record in decide_unfence_broker(IMAGE, Node(1, {}), 1, lead_again=lead_again):
        delta.replay(record)
    return [delta.apply().topics["t"].partitions[index].leader_epoch for index in (0, 1)]


def test_after_a_clean_stop_the_epoch_stays():
    assert epochs_after(lead_again=False) == [4, 4]


def test_after_a_crash_what_it_led_is_led_in_the_next_epoch():
    assert epochs_after(lead_again=True) == [5, 4]
