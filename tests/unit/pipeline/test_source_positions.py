"""Offsets of a stream as a checkpoint keeps them."""

from __future__ import annotations

import json

import pytest

from penstock.base.ids import TopicPartition
from penstock.pipeline.source.options import Split
from penstock.pipeline.source.positions import CheckpointError, Positions

A, B = TopicPartition("orders", 10), TopicPartition("orders", 9)


def test_offsets_are_written_as_sparks_kafka_source_writes_them() -> None:
    assert json.dumps(Positions({A: 5, B: 7}).to_json()) == '{"orders": {"9": 7, "10": 5}}'


def test_what_a_batch_needs_to_be_run_again_comes_back() -> None:
    written = Positions({A: 5}, "q1", {A: 2}, Split(4, None), {"orders": "id1"})
    assert Positions.from_json(json.loads(json.dumps(written.to_json()))) == written


def test_a_checkpoint_of_sparks_kafka_source_can_be_gone_on_with() -> None:
    assert Positions.from_json({"orders": {"9": 7}}) == Positions({B: 7})


def test_offsets_of_another_source_are_refused() -> None:
    with pytest.raises(CheckpointError, match="Does it belong to another source"):
        Positions.from_json({"logOffset": 3})
