"""`quorum-state`: the epoch that this node has reached and whom it knows to lead it, as Kafka keeps it in JSON.

Version 0 belongs to quorums whose voters stand in the configuration, version 1 to those whose voters stand in the log.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from penstock.base.errors import DecodeError
from penstock.base.ids import NO_ID, id_from_text, id_text

FILE = "quorum-state"
NOBODY = -1


@dataclass(frozen=True, slots=True)
class QuorumState:
    leader_id: int = NOBODY
    leader_epoch: int = 0
    voted_id: int = NOBODY
    voted_directory_id: bytes = NO_ID
    version: int = 1
    voters: tuple[int, ...] = ()
    """Version 0 only."""

    def encode(self) -> bytes:
        fields: dict[str, object]
        if self.version == 0:
            fields = {
                "clusterId": "",
                "leaderId": self.leader_id,
                "leaderEpoch": self.leader_epoch,
                "votedId": self.voted_id,
                "appliedOffset": 0,
                "currentVoters": [{"voterId": voter} for voter in self.voters],
            }
        else:
            fields = {
                "leaderId": self.leader_id,
                "leaderEpoch": self.leader_epoch,
                "votedId": self.voted_id,
                "votedDirectoryId": id_text(self.voted_directory_id),
            }
        return json.dumps(fields | {"data_version": self.version}, separators=(",", ":")).encode()

    @staticmethod
    def decode(raw: bytes) -> QuorumState:
        try:
            fields = json.loads(raw)
            version = int(fields["data_version"])
            if version not in (0, 1):
                raise DecodeError(f"{FILE}: version {version} is neither 0 nor 1")
            return QuorumState(
                leader_id=int(fields["leaderId"]),
                leader_epoch=int(fields["leaderEpoch"]),
                voted_id=int(fields["votedId"]),
                voted_directory_id=id_from_text(fields["votedDirectoryId"]) if "votedDirectoryId" in fields else NO_ID,
                version=version,
                voters=tuple(int(one["voterId"]) for one in fields.get("currentVoters") or ()),
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise DecodeError(f"{FILE}: {problem!r}") from None
