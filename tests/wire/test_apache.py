"""Every message against Apache Kafka's own classes: they find our values in our bytes, and write those bytes again."""

from __future__ import annotations

import base64
import json
from typing import Any

from invention import all_messages, invent, versions

from penstock.base.ids import id_text
from penstock.protocol.message import Message, Structure
from penstock.protocol.registry import module_name

SEEDS = range(3)


def assert_same(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, dict):
        for name, value in theirs.items():
            if not name.endswith("SizeInBytes"):
                assert_same(getattr(ours, attribute(ours, name)), value)
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for our_item, their_item in zip(ours, theirs, strict=True):
            assert_same(our_item, their_item)
    elif isinstance(ours, bytes | memoryview):
        assert theirs in (base64.b64encode(ours).decode(), id_text(ours) if len(ours) == 16 else "")
    else:
        assert ours == theirs


def attribute(ours: Structure, name: str) -> str:
    found = module_name(name)
    return found if hasattr(ours, found) else found + "_"


def question(message: Message, version: int) -> str:
    return f"{type(message).__name__} {version} {message.encode(version).hex()}"


def test_apaches_classes_read_our_values_and_write_our_bytes(oracle: Any) -> None:
    cases = [
        (invent(cls, version, seed), version) for cls in all_messages() for version in versions(cls) for seed in SEEDS
    ]
    answers = oracle([question(message, version) for message, version in cases])
    assert len(answers) == len(cases)
    for (message, version), answer in zip(cases, answers, strict=True):
        written, _, fields = answer.partition(" ")
        where = f"{type(message).__name__} version {version}"
        assert written == message.encode(version).hex(), f"{where}: {answer}"
        assert_same(message, json.loads(fields))
