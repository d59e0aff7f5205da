"""Leaders elected on request (ElectLeaders), and by the controller itself: preferred ones, and unclean ones for
partitions that nobody leads."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.controller.elections import Election, Wish, decide_change
from penstock.core.controller.outlook import Outlook
from penstock.core.controller.result import Result
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import NO_LEADER, Image, Partition
from penstock.protocol.generated.elect_leaders_request import ElectLeadersRequest
from penstock.protocol.generated.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from penstock.protocol.message import Message

_ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}
"""by the number on the wire"""


def decide_elect_leaders(image: Image, node: Node, request: ElectLeadersRequest) -> Result[ElectLeadersResponse]:
    """Asked for all partitions, only those are answered where an election was needed."""
    election = _ELECTIONS.get(request.election_type)
    if election is None:
        return Result(ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST))
    outlook = Outlook(image, node)
    records: list[Message] = []
    results = []
    for topic, indexes in _asked(image, request):
        found = [_elected(outlook, topic, index, election, records) for index in indexes]
        if request.topic_partitions is None:
            found = [one for one in found if one.error_code != ErrorCode.ELECTION_NOT_NEEDED]
        results.append(ReplicaElectionResult(topic=topic, partition_result=found))
    return Result(ElectLeadersResponse(replica_election_results=results), records)


def _asked(image: Image, request: ElectLeadersRequest) -> Iterator[tuple[str, list[int]]]:
    if request.topic_partitions is not None:
        yield from ((one.topic, one.partitions) for one in request.topic_partitions)
    else:
        yield from ((topic.name, sorted(topic.partitions)) for topic in image.topics.values())


def _elected(outlook: Outlook, name: str, index: int, election: Election, records: list[Message]) -> PartitionResult:
    result = PartitionResult(partition_id=index, error_message=None)
    try:
        records.append(_election(outlook, name, index, election))
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message
    return result


def _election(outlook: Outlook, name: str, index: int, election: Election) -> Message:
    topic = outlook.image.topic(name)
    partition = None if topic is None else topic.partitions.get(index)
    if topic is None or partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {name}-{index}.")
    needed = not has_preferred_leader(partition) if election is Election.PREFERRED else partition.leader == NO_LEADER
    if not needed:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
    record = decide_change(outlook, topic, index, Wish(election=election))
    if record is None:
        preferred = election is Election.PREFERRED
        raise KafkaError(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE if preferred else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        )
    return record


def has_preferred_leader(partition: Partition) -> bool:
    return partition.leader == partition.replicas[0]


def decide_preferred_leaders(image: Image, node: Node, limit: int) -> list[Message]:
    """Give leaders back to the first replicas, where they are in sync; no more than `limit` at once."""
    outlook = Outlook(image, node)
    records: list[Message] = []
    for topic in image.topics.values():
        for index, partition in topic.partitions.items():
            if len(records) >= limit:
                return records
            if not has_preferred_leader(partition):
                record = decide_change(outlook, topic, index, Wish(election=Election.PREFERRED))
                records += [record] if record is not None else []
    return records


def decide_unclean_leaders(image: Image, node: Node, limit: int) -> list[Message]:
    """Where nobody leads and the topic allows it, whoever is alive leads: what was committed may be lost."""
    outlook = Outlook(image, node)
    records: list[Message] = []
    for topic in image.topics.values():
        leaderless = [index for index, one in topic.partitions.items() if one.leader == NO_LEADER]
        if leaderless and outlook.unclean_allowed(topic.name):
            for index in leaderless[: limit - len(records)]:
                record = decide_change(outlook, topic, index, Wish(election=Election.UNCLEAN))
                if record is not None:
                    records.append(record)
    return records
