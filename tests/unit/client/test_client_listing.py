"""Groups, from scripted answers of the library."""

from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupType
from confluent_kafka import KafkaError as LibraryError

from penstock.client import Admin, BrokerUnreachable

READERS = SimpleNamespace(group_id="readers", state=ConsumerGroupState.EMPTY, type=ConsumerGroupType.CLASSIC)


@pytest.mark.parametrize("told", [[], [READERS]], ids=["no broker", "one broker"])
def test_groups_that_not_every_broker_lists_are_an_error(told: list[SimpleNamespace]):
    answer = Future()
    answer.set_result(SimpleNamespace(valid=told, errors=[LibraryError(LibraryError._TRANSPORT, "refused")]))
    admin = Admin("localhost:1")
    admin._client = SimpleNamespace(list_consumer_groups=lambda **_: answer)
    with pytest.raises(BrokerUnreachable, match="cannot list groups: refused"):
        admin.groups()
