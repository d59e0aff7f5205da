"""What a decision is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.limits import METADATA_RECORDS_PER_REQUEST_MAX
from penstock.protocol.message import Message

Response = TypeVar("Response")


@dataclass(frozen=True, slots=True)
class Result(Generic[Response]):
    """Records to append as one batch, and the answer to give once they are committed."""

    response: Response
    records: list[Message] = field(default_factory=list)


def check_record_count(count: int) -> None:
    """One request may not flood the metadata log."""
    if count > METADATA_RECORDS_PER_REQUEST_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"the request asks for {count} changes at once, the limit is {METADATA_RECORDS_PER_REQUEST_MAX}: split it",
        )
