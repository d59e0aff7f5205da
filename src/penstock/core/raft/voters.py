"""The voters of the metadata quorum, as the log's control records name them, and how they changed along the log."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from penstock.base.ids import NO_ID
from penstock.protocol.generated.k_raft_version_record import KRaftVersionRecord
from penstock.protocol.generated.voters_record import Endpoint, KRaftVersionFeature, VotersRecord
from penstock.protocol.generated.voters_record import Voter as VoterField
from penstock.records.control import ControlType

T = TypeVar("T")
Control = tuple[ControlType, bytes]
"""A control record's type and the bytes of its value."""

KRAFT_VERSION_LATEST = 1
"""The level at which voters stand in the log and may change."""
FORMATTED = -1
"""The offset of what was not written to the log but into the snapshot that it was formatted with."""


class VoterEndpoint(NamedTuple):
    name: str
    host: str
    port: int


class Replica(NamedTuple):
    """Who keeps a copy of the log. With another directory the same node is another one: it has forgotten its votes."""

    id: int
    directory_id: bytes = NO_ID


class Voter(NamedTuple):
    id: int
    directory_id: bytes
    """All zeros where voters stand in the configuration: there nobody knows it."""
    endpoints: tuple[VoterEndpoint, ...]
    kraft_version_min: int = 0
    kraft_version_max: int = KRAFT_VERSION_LATEST

    @property
    def replica(self) -> Replica:
        return Replica(self.id, self.directory_id)

    def is_replica(self, replica: Replica) -> bool:
        return self.id == replica.id and self.directory_id in (NO_ID, replica.directory_id)


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
    """What the control records of a log and its snapshot say of voters, with the offset at which they say it.

    The last entry counts, committed or not: a change of voters is in force from the moment it is in a log (KIP-853).
    Invariant: offsets ascend; entries go when the log is cut below them.
    """

    def __init__(self, static: Voters = ()) -> None:
        self.static = static
        """The voters of the configuration: in force while the log names none."""
        self._versions: list[tuple[int, int]] = []
        self._voters: list[tuple[int, Voters]] = []

    @property
    def kraft_version(self) -> int:
        return self._versions[-1][1] if self._versions else 0

    @property
    def voters(self) -> Voters:
        return self._voters[-1][1] if self._voters else self.static

    @property
    def offset(self) -> int:
        """Where the voters that are in force were written."""
        return self._voters[-1][0] if self._voters else FORMATTED

    @property
    def in_log(self) -> bool:
        """Whether the log itself names the voters, and not only the snapshot that it was formatted with."""
        return self.offset > FORMATTED

    def learn(self, kind: ControlType, value: bytes, offset: int) -> None:
        if kind is ControlType.KRAFT_VERSION:
            self._versions.append((offset, KRaftVersionRecord.decode(value, 0).k_raft_version))
        elif kind is ControlType.KRAFT_VOTERS:
            self._voters.append((offset, decode_voters(value)))

    def begin(self, kraft_version: int, voters: Voters) -> None:
        """As formatted."""
        self._versions, self._voters = [(FORMATTED, kraft_version)], [(FORMATTED, voters)]

    def forget(self) -> None:
        """A snapshot takes the place of the log, and brings what it says of voters."""
        self._versions, self._voters = [], []

    def cut(self, end_offset: int) -> None:
        """The log now ends at `end_offset`."""
        self._versions = [one for one in self._versions if one[0] < end_offset]
        self._voters = [one for one in self._voters if one[0] < end_offset]

    def settle(self, end_offset: int) -> None:
        """Everything below is committed and no snapshot will be made of less: what was in force before is forgotten."""
        self._voters = _from_last(self._voters, end_offset)
        self._versions = _from_last(self._versions, end_offset)

    def find(self, node_id: int) -> Voter | None:
        return next((one for one in self.voters if one.id == node_id), None)

    def is_voter(self, replica: Replica) -> bool:
        return any(one.is_replica(replica) for one in self.voters)

    def was_voter(self, replica: Replica, high_watermark: int) -> bool:
        """Whether it voted before a change that is not known to be committed."""
        before = self._voters[-2][1] if len(self._voters) > 1 else self.static
        return self.offset >= high_watermark and any(one.is_replica(replica) for one in before)

    def control_records(self, offset: int | None = None) -> list[Control]:
        """What says the same again: for a snapshot of what lies up to `offset`, or for the first batch of all."""
        versions = [one for at, one in self._versions if offset is None or at <= offset]
        voters = [one for at, one in self._voters if offset is None or at <= offset]
        if not versions or versions[-1] == 0:
            return []
        version = KRaftVersionRecord(k_raft_version=versions[-1]).encode(0)
        return [
            (ControlType.KRAFT_VERSION, bytes(version)),
            (ControlType.KRAFT_VOTERS, encode_voters(voters[-1] if voters else ())),
        ]


def _from_last(entries: list[tuple[int, T]], end_offset: int) -> list[tuple[int, T]]:
    passed = sum(1 for at, _ in entries if at < end_offset)
    return entries[max(passed - 1, 0) :]
