"""Control records that are not what they should be."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.records.control import ControlType, control_key, control_type, end_marker_of
from penstock.records.record import Record


@pytest.mark.parametrize("kind", [kind for kind in ControlType if kind is not ControlType.UNKNOWN])
def test_a_key_names_its_type(kind: ControlType) -> None:
    assert control_type(control_key(kind)) is kind


@pytest.mark.parametrize("key", [b"\x00\x00\x00\x07", b"\x00\x00\xff\xff", b"\x00\x01\x7f\xff"])
def test_types_of_the_future_are_unknown_not_errors(key: bytes) -> None:
    assert control_type(key) is ControlType.UNKNOWN


def test_a_key_of_a_later_version_is_read_as_the_one_we_know() -> None:
    assert control_type(b"\x00\x05\x00\x01more") is ControlType.COMMIT


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x01"])
def test_a_key_that_is_none(key: bytes | None) -> None:
    with pytest.raises(KafkaError) as error:
        control_type(key)
    assert error.value.code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("value", [None, b"", b"\x00\x00\x00\x00\x01", b"\xff\xff\x00\x00\x00\x01"])
def test_a_marker_that_is_cut_short(value: bytes | None) -> None:
    with pytest.raises(KafkaError) as error:
        end_marker_of(Record(4, 0, control_key(ControlType.COMMIT), value))
    assert error.value.code == ErrorCode.INVALID_RECORD
