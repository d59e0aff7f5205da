"""Where replicas lie on a broker's disks: AssignReplicasToDirs (KIP-858)."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.controller.brokers import check_broker_epoch
from penstock.core.controller.elections import Wish, decide_change
from penstock.core.controller.outlook import Outlook
from penstock.core.controller.result import Result
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import Image, Topic
from penstock.protocol.generated import assign_replicas_to_dirs_response as answers
from penstock.protocol.generated.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from penstock.protocol.generated.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse
from penstock.protocol.message import Message


def decide_assign_directories(
    image: Image, node: Node, request: AssignReplicasToDirsRequest
) -> Result[AssignReplicasToDirsResponse]:
    """A replica in a directory that is not online is lost to its broker: others lead it."""
    outlook = Outlook(image, node)
    try:
        check_broker_epoch(image, request.broker_id, request.broker_epoch)
        if not outlook.has_directories:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    except KafkaError as error:
        return Result(AssignReplicasToDirsResponse(error_code=error.code))
    records: list[Message] = []
    response = AssignReplicasToDirsResponse()
    for asked in request.directories:
        answer = answers.DirectoryData(id=asked.id)
        for of_topic in asked.topics:
            topic = image.topic_by_id(of_topic.topic_id)
            results = [
                _assigned(outlook, request.broker_id, asked.id, topic, one.partition_index, records)
                for one in of_topic.partitions
            ]
            answer.topics.append(answers.TopicData(topic_id=of_topic.topic_id, partitions=results))
        response.directories.append(answer)
    return Result(response, records)


def _assigned(
    outlook: Outlook, broker_id: int, directory: bytes, topic: Topic | None, index: int, records: list[Message]
) -> answers.PartitionData:
    answer = answers.PartitionData(partition_index=index)
    partition = None if topic is None else topic.partitions.get(index)
    if topic is None:
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_ID
    elif partition is None:
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif broker_id not in partition.replicas:
        answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    else:
        isr = partition.isr
        if directory not in outlook.image.brokers[broker_id].log_dirs:
            isr = tuple(one for one in isr if one != broker_id)
        record = decide_change(outlook, topic, index, Wish(isr=isr, directories={broker_id: directory}))
        records += [record] if record is not None else []
    return answer
