"""The work queue of the examples does what it says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import work_queue


def test_every_job_is_done_once_or_given_up_with_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    shop = work_queue.main()
    assert sorted(shop.done) == sorted(
        f"picture-{number}.jpg" for number in range(work_queue.JOBS) if number not in (7, 13)
    )
    assert set(shop.done.values()) == {1}
    assert shop.failed["picture-7.jpg"] == 3
    said = capsys.readouterr().out
    assert "given up: picture-13.jpg (rejected)" in said
    assert "given up: picture-7.jpg (delivered too often)" in said
