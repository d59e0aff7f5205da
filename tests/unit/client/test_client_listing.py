"""Groups, from scripted answers of the library."""

from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError as LibraryError

from penstock.client import Admin, BrokerUnreachable


def test_groups_that_no_broker_lists_are_an_error():
    answer = Future()
    answer.set_result(SimpleNamespace(valid=[], errors=[LibraryError(LibraryError._TRANSPORT, "refused")]))
    admin = Admin("localhost:1")
    admin._client = SimpleNamespace(list_consumer_groups=lambda **_: answer)
    with pytest.raises(BrokerUnreachable, match="cannot list groups: refused"):
        admin.groups()
