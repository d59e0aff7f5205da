"""What of Spark's errors comes to the screen."""

from __future__ import annotations

from penstock.pipeline.quiet import telling

FLUSH = """\
PySpark daemon failed to flush the output to the worker process:
Traceback (most recent call last):
  File "pyspark/daemon.py", line 95, in worker
    outfile.flush()
BrokenPipeError: [Errno 32] Broken pipe

"""
FAILURE = """\
Traceback (most recent call last):
  File "mine.py", line 1, in <module>
BrokenPipeError: [Errno 32] Broken pipe
"""


def shown(text: str) -> str:
    return b"".join(telling(text.encode().splitlines(keepends=True))).decode()


def test_a_worker_that_was_let_go_is_not_told() -> None:
    assert shown("before\n" + FLUSH + FLUSH + "after\n") == "before\nafter\n"


def test_a_failure_behind_it_is() -> None:
    assert shown(FLUSH + FAILURE) == FAILURE


def test_a_failure_by_itself_is_told_with_its_empty_lines() -> None:
    assert shown("\n" + FAILURE + "\n") == "\n" + FAILURE + "\n"


def test_lines_without_a_word_leave_nothing_behind() -> None:
    noise = "WARNING: Using incubator modules: jdk.incubator.vector\n\n"
    assert shown(noise + "first\n\n" + noise + "second\n") == "first\n\nsecond\n"
