"""The voters of the metadata quorum, as the log's control records name them."""

from __future__ import annotations

from typing import NamedTuple

from penstock.protocol.generated.k_raft_version_record import KRaftVersionRecord
from penstock.protocol.generated.voters_record import Endpoint, KRaftVersionFeature, VotersRecord
from penstock.protocol.generated.voters_record import Voter as VoterField
from penstock.records.control import ControlType

Control = tuple[ControlType, bytes]
"""A control record's type and the bytes of its value."""

KRAFT_VERSION_LATEST = 1
"""The level at which voters stand in the log and may change."""


class VoterEndpoint(NamedTuple):
    name: str
    host: str
    port: int


class Voter(NamedTuple):
    id: int
    directory_id: bytes
    endpoints: tuple[VoterEndpoint, ...]
    kraft_version_min: int = 0
    kraft_version_max: int = KRAFT_VERSION_LATEST


Voters = tuple[Voter, ...]


def encode_voters(voters: Voters) -> bytes:
    record = VotersRecord(
        voters=[
            VoterField(
                voter_id=one.id,
                voter_directory_id=one.directory_id,
                endpoints=[Endpoint(name=e.name, host=e.host, port=e.port) for e in one.endpoints],
                k_raft_version_feature=KRaftVersionFeature(
                    min_supported_version=one.kraft_version_min, max_supported_version=one.kraft_version_max
                ),
            )
            for one in voters
        ]
    )
    return bytes(record.encode(0))


def decode_voters(value: bytes) -> Voters:
    return tuple(
        Voter(
            one.voter_id,
            one.voter_directory_id,
            tuple(VoterEndpoint(e.name, e.host, e.port) for e in one.endpoints),
            one.k_raft_version_feature.min_supported_version,
            one.k_raft_version_feature.max_supported_version,
        )
        for one in VotersRecord.decode(value, 0).voters
    )


class VoterHistory:
    """What the control records of a log and its snapshot say of voters, read in their order."""

    def __init__(self) -> None:
        self.kraft_version = 0
        self.voters: Voters = ()
        self.in_log = False
        """Whether the log itself names the voters, and not only the snapshot that it was formatted with."""

    def learn(self, kind: ControlType, value: bytes, *, in_log: bool) -> None:
        if kind is ControlType.KRAFT_VERSION:
            self.kraft_version = KRaftVersionRecord.decode(value, 0).k_raft_version
        elif kind is ControlType.KRAFT_VOTERS:
            self.voters = decode_voters(value)
            self.in_log = in_log

    def control_records(self) -> list[Control]:
        """What says the same again: for a snapshot, or for the first batch after formatting."""
        if self.kraft_version == 0:
            return []
        version = KRaftVersionRecord(k_raft_version=self.kraft_version).encode(0)
        return [
            (ControlType.KRAFT_VERSION, bytes(version)),
            (ControlType.KRAFT_VOTERS, encode_voters(self.voters)),
        ]
