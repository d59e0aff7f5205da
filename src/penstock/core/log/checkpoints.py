"""The small text files of a data directory, in Kafka's formats (docs/formats/checkpoints.md).

Offset checkpoints: `recovery-point-offset-checkpoint`, `log-start-offset-checkpoint`, `replication-offset-checkpoint`,
`cleaner-offset-checkpoint`. The clean-shutdown marker: `.kafka_cleanshutdown`. A partition's own: `partition.metadata`.
These are codecs; the shell writes them with `Disk.replace`, so a file is old or new and never mixed.
"""

from __future__ import annotations

import json

from penstock.base.errors import DecodeError
from penstock.base.ids import TopicPartition, id_from_text, id_text

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEAN_OFFSETS = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

_VERSION = 0


def encode_offsets(offsets: dict[TopicPartition, int]) -> bytes:
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items())]
    return "\n".join([str(_VERSION), str(len(lines)), *lines, ""]).encode()


def decode_offsets(raw: bytes) -> dict[TopicPartition, int]:
    if not raw:
        return {}  # Kafka makes the files at its start and fills them minutes later
    lines = raw.decode("utf-8", "replace").split("\n")
    try:
        version, count = int(lines[0]), int(lines[1])
        rows = [line.split(" ") for line in lines[2 : 2 + count]]
        offsets = {TopicPartition(topic, int(partition)): int(offset) for topic, partition, offset in rows}
    except (ValueError, IndexError) as problem:
        raise DecodeError(f"offset checkpoint: {problem}") from None
    if version != _VERSION or len(offsets) != count:
        raise DecodeError(f"offset checkpoint: version {version}, {len(offsets)} of {count} entries")
    return offsets


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    return json.dumps({"version": _VERSION, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()


def decode_clean_shutdown(raw: bytes) -> int:
    """The broker epoch of the last clean stop, -1 where the file does not tell."""
    try:
        epoch = json.loads(raw)["brokerEpoch"]
    except (ValueError, KeyError, TypeError):
        return -1
    return epoch if isinstance(epoch, int) else -1


def encode_partition_metadata(topic_id: bytes) -> bytes:
    return f"version: {_VERSION}\ntopic_id: {id_text(topic_id)}".encode()


def decode_partition_metadata(raw: bytes) -> bytes:
    """The topic id."""
    fields = dict(line.split(": ", 1) for line in raw.decode("ascii", "replace").splitlines() if ": " in line)
    try:
        if int(fields["version"]) != _VERSION:
            raise DecodeError(f"partition.metadata: version {fields['version']} is not {_VERSION}")
        return id_from_text(fields["topic_id"])
    except (KeyError, ValueError) as problem:
        raise DecodeError(f"partition.metadata: {problem}") from None
