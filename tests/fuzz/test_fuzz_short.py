"""The fuzzer for a few seconds, with seeds that stay the same; `python -m tests.fuzz.run` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.decoders import fuzz_decoders
from tests.fuzz.live import fuzz_broker

SECONDS_MAX = 6.0


@pytest.mark.parametrize("seed", [1])
def test_decoders_survive_bent_frames(seed: int) -> None:
    assert fuzz_decoders(seed, SECONDS_MAX, frames_max=3_000) > 100


@pytest.mark.parametrize("seed", [1])
def test_a_broker_survives_bent_frames(tmp_path: Path, seed: int) -> None:
    assert fuzz_broker(tmp_path, seed, SECONDS_MAX, frames_max=3_000) > 50
