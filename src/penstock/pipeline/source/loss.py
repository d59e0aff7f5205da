"""What is said when records are gone before they were read, and whether that ends the query."""

from __future__ import annotations

import logging

from penstock.base.ids import TopicPartition

log = logging.getLogger(__name__)


class DataLost(RuntimeError):
    """Records that the query has not read are no longer there, and failOnDataLoss is true."""


NEXT_STEP = (
    "To go on with what is left, set failOnDataLoss to false; to begin anew, start the query with a new checkpoint"
)


def report(text: str, fail: bool) -> None:
    """Ends the query, or says it and goes on."""
    if fail:
        raise DataLost(f"{text}. {NEXT_STEP}.")
    log.warning("%s; going on with what is left, as failOnDataLoss is false", text)


def deleted(partition: TopicPartition, position: int) -> str:
    return (
        f"partition {partition.partition} of topic {partition.topic} is gone, and was read up to offset {position}: "
        "the topic was deleted, or created anew with fewer partitions"
    )


def rewound(partition: TopicPartition, position: int, end: int) -> str:
    return (
        f"partition {partition.partition} of topic {partition.topic} ends at offset {end}, and was read up to offset "
        f"{position} already: the topic was deleted and created anew, or its log was cut"
    )


def anew(partition: TopicPartition, position: int) -> str:
    return (
        f"topic {partition.topic} was deleted and created anew since partition {partition.partition} was read up to "
        f"offset {position}: what the old one held behind that is gone, and the new one begins with other records"
    )


def unread(partition: TopicPartition, position: int, subscription: object) -> str:
    return (
        f"the checkpoint has partition {partition.partition} of topic {partition.topic} read up to offset {position}, "
        f"and this query reads {subscription}: a query that reads something else needs a checkpoint of its own"
    )


def late(partition: TopicPartition, first: int) -> str:
    return (
        f"partition {partition.partition} of topic {partition.topic} is new to this query and begins at offset {first} "
        f"instead of 0: its offsets 0 to {first - 1} were deleted before they were read"
    )


def short(partition: TopicPartition, wanted: int, end: int) -> str:
    return (
        f"endingOffsets asks for partition {partition.partition} of topic {partition.topic} up to offset {wanted}, and "
        f"it ends at {end}"
    )


def behind(partition: TopicPartition, start: int, end: int) -> str:
    return (
        f"startingOffsets asks for partition {partition.partition} of topic {partition.topic} from offset {start} on, "
        f"and the read ends at {end}"
    )


def expired(partition: TopicPartition, start: int, end: int, first: int | None) -> str:
    now = "it does not exist any more" if first is None else f"it now begins at offset {first}"
    return (
        f"offsets {start} to {end - 1} of partition {partition.partition} of topic {partition.topic} were to be read, "
        f"and {now}: records were deleted by retention (retention.ms, retention.bytes) or by hand"
    )
