from __future__ import annotations

import time

from penstock.base.expressions import expression_fault, matches


def test_the_whole_text_must_match():
    assert matches("app-[0-9]+", "app-12")
    assert not matches("app-[0-9]+", "my-app-12")


def test_a_pattern_that_python_would_take_years_for_takes_no_time():
    began = time.process_time()
    assert not matches("(a+)+$", "a" * 5000 + "b")
    assert time.process_time() - began < 1


def test_a_broken_pattern_says_why_and_matches_nothing():
    assert expression_fault("(") is not None
    assert not matches("(", "(")
    assert expression_fault("a*") is None
