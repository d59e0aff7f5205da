"""What the checks of a heartbeat's fields share: INVALID_REQUEST, in Kafka's words."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError


def check_text(text: str | None, fault: str) -> None:
    check(text is None or bool(text.strip()), fault)


def check(holds: bool, fault: str) -> None:
    if not holds:
        raise KafkaError(ErrorCode.INVALID_REQUEST, fault)


def unknown_member(member_id: str, group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}.")
