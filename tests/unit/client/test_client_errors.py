"""What the library reports becomes one family of errors."""

from confluent_kafka import KafkaError as LibraryError
from confluent_kafka import KafkaException

from penstock.client.errors import (
    BrokerUnreachable,
    ClientError,
    DeserializationError,
    TopicNotFound,
    from_exception,
    from_library,
)


def test_an_error_says_what_was_being_done():
    error = from_library(LibraryError(3, "no such topic"), "describe the topic 'a'")
    assert isinstance(error, TopicNotFound)
    assert str(error) == "cannot describe the topic 'a': no such topic"
    assert (error.code, error.retriable) == (3, True)


def test_an_unreachable_broker_has_its_own_kind():
    assert isinstance(from_exception(KafkaException(LibraryError(LibraryError._TRANSPORT)), "x"), BrokerUnreachable)


def test_other_refusals_keep_their_code():
    error = from_library(LibraryError(LibraryError.TOPIC_AUTHORIZATION_FAILED), "write")
    assert type(error) is ClientError
    assert (error.code, error.retriable) == (29, False)


def test_an_undecodable_record_is_named():
    error = DeserializationError("value", "orders", 2, 17, b"x", "not JSON")
    assert "the value of orders-2 at offset 17" in str(error)
