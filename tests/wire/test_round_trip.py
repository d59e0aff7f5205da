"""What a message was before it was encoded, it is again after it was decoded: every message, every version."""

from __future__ import annotations

import pytest
from invention import all_messages, invent, requests_and_responses, versions

from penstock.protocol.message import Message

SEEDS = range(3)
ALL = all_messages()


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_decoding_undoes_encoding(cls: type[Message]) -> None:
    for version in versions(cls):
        for seed in SEEDS:
            message = invent(cls, version, seed)
            assert cls.decode(message.encode(version), version) == message


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_what_follows_a_message_is_ignored(cls: type[Message]) -> None:
    message = invent(cls, cls.MAX_VERSION, 0)
    assert cls.decode(message.encode(cls.MAX_VERSION) + b"more", cls.MAX_VERSION) == message


def test_all_requests_and_responses_of_the_protocol_are_here() -> None:
    assert sum(len(versions(cls)) for cls in requests_and_responses()) == 604
