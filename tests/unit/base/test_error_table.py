from __future__ import annotations

import re

from penstock.base.errors import TEXT, ErrorCode, KafkaError


def test_every_code_has_one_sentence() -> None:
    assert set(TEXT) == set(ErrorCode)
    for code in ErrorCode:
        assert re.fullmatch(r"[A-Z].*[^ ]\.", code.text), code


def test_codes_run_without_a_gap() -> None:
    assert sorted(ErrorCode) == list(range(-1, max(ErrorCode) + 1))


def test_a_client_may_retry_what_passes_by_itself() -> None:
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.retriable
    assert not ErrorCode.TOPIC_AUTHORIZATION_FAILED.retriable
    assert not ErrorCode.NONE.retriable


def test_an_error_keeps_its_code_and_text() -> None:
    error = KafkaError(ErrorCode.INVALID_CONFIG, "retention.ms of orders must be a number")
    assert (error.code, error.message, str(error)) == (ErrorCode.INVALID_CONFIG, error.message, error.message)
    assert KafkaError(ErrorCode.INVALID_CONFIG).message is None
