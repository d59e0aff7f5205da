"""The error table: every code of the protocol with its name, whether a client may retry, and what we say of it.

`KafkaError` is how a core or a handler refuses input from the wire or the disk; our own mistakes are assertions.
"""

from __future__ import annotations

from enum import IntEnum

from penstock.base.limits import ERROR_TEXT_LENGTH_MAX


class ErrorCode(IntEnum):
    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed later, without anyone changing anything."""
        return self in RETRIABLE

    @property
    def text(self) -> str:
        """One sentence for a person."""
        return TEXT[self]


RETRIABLE: frozenset[ErrorCode] = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)

TEXT: dict[ErrorCode, str] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "The broker failed in a way it did not foresee; its log has the details.",
    ErrorCode.NONE: "No error.",
    ErrorCode.OFFSET_OUT_OF_RANGE: "The offset lies before the start or beyond the end of the partition's log.",
    ErrorCode.CORRUPT_MESSAGE: (
        "The batch does not match its checksum, breaks the record format, or lacks a key that its topic needs."
    ),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "There is no such topic or partition here, or the client may not know of it.",
    ErrorCode.INVALID_FETCH_SIZE: "The number of bytes to fetch makes no sense.",
    ErrorCode.LEADER_NOT_AVAILABLE: "The partition has no leader at the moment; one is being elected.",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: (
        "This broker does not lead the partition, or holds no copy of it; refresh the metadata."
    ),
    ErrorCode.REQUEST_TIMED_OUT: "The time allowed for the request ran out before it was done.",
    ErrorCode.BROKER_NOT_AVAILABLE: "The broker cannot be reached.",
    ErrorCode.REPLICA_NOT_AVAILABLE: "The copy of the partition that was asked for is not available.",
    ErrorCode.MESSAGE_TOO_LARGE: "The batch is larger than the topic accepts (max.message.bytes).",
    ErrorCode.STALE_CONTROLLER_EPOCH: "The request comes from a controller that has been replaced.",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "The text stored with the committed offset is longer than allowed.",
    ErrorCode.NETWORK_EXCEPTION: "The connection closed before the answer arrived.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is still reading its state; try again in a moment.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "No coordinator can be named yet; try again in a moment.",
    ErrorCode.NOT_COORDINATOR: "Another broker coordinates this group or transactional id; look it up again.",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "The topic's name is not legal, or the topic is internal and cannot be used so.",
    ErrorCode.RECORD_LIST_TOO_LARGE: "The batch is larger than one log segment (segment.bytes).",
    ErrorCode.NOT_ENOUGH_REPLICAS: (
        "Fewer copies are in sync than min.insync.replicas asks for, so nothing was written."
    ),
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: (
        "The records were written, but to fewer in-sync copies than min.insync.replicas asks for."
    ),
    ErrorCode.INVALID_REQUIRED_ACKS: "The number of acknowledgements must be -1, 0 or 1.",
    ErrorCode.ILLEGAL_GENERATION: "The member speaks of a generation of the group that is over; it must join again.",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: (
        "The member has no assignment protocol in common with the rest of the group."
    ),
    ErrorCode.INVALID_GROUP_ID: "The group id is empty or otherwise not usable.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The group has no member of this id; it must join again.",
    ErrorCode.INVALID_SESSION_TIMEOUT: "The session timeout lies outside what the broker allows for groups.",
    ErrorCode.REBALANCE_IN_PROGRESS: "The group is being rebalanced; the member must join again.",
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE: "The offsets to commit do not fit in one record.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "The principal may not do this to the topic.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "The principal may not do this to the group.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "The principal may not do this to the cluster.",
    ErrorCode.INVALID_TIMESTAMP: "A record's timestamp is further from the broker's clock than the topic allows.",
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: "This listener does not offer the SASL mechanism that the client chose.",
    ErrorCode.ILLEGAL_SASL_STATE: "The request does not belong at this point of the SASL exchange.",
    ErrorCode.UNSUPPORTED_VERSION: "This version of the request is not spoken here.",
    ErrorCode.TOPIC_ALREADY_EXISTS: "A topic of this name exists already.",
    ErrorCode.INVALID_PARTITIONS: "The number of partitions is not acceptable.",
    ErrorCode.INVALID_REPLICATION_FACTOR: "The replication factor is below one or above the number of brokers.",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "The list of brokers that should hold the partitions is not acceptable.",
    ErrorCode.INVALID_CONFIG: "A configuration name or value is not acceptable.",
    ErrorCode.NOT_CONTROLLER: "This node is not the active controller; look it up again.",
    ErrorCode.INVALID_REQUEST: "The request contradicts itself or the protocol.",
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: "The record format does not allow this request.",
    ErrorCode.POLICY_VIOLATION: "A policy of this cluster forbids what the request asks for.",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: (
        "The batch's sequence number does not follow the producer's last one; a batch is missing."
    ),
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: "The batch was written before, too long ago to tell its offset.",
    ErrorCode.INVALID_PRODUCER_EPOCH: "The producer's epoch is older than the one the broker knows.",
    ErrorCode.INVALID_TXN_STATE: "The transaction is not in a state that allows this.",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "The producer id does not belong to this transactional id.",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "The transaction timeout is longer than transaction.max.timeout.ms allows.",
    ErrorCode.CONCURRENT_TRANSACTIONS: (
        "The previous transaction of this id is still being ended; try again in a moment."
    ),
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "The marker comes from a transaction coordinator that has been replaced.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "The principal may not use this transactional id.",
    ErrorCode.SECURITY_DISABLED: "No authorizer is configured, so there are no access rules to show or change.",
    ErrorCode.OPERATION_NOT_ATTEMPTED: "The operation was not tried because another one in the same request failed.",
    ErrorCode.KAFKA_STORAGE_ERROR: "The disk that holds the partition failed.",
    ErrorCode.LOG_DIR_NOT_FOUND: "The broker has no log directory of this name.",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "The credentials were not accepted.",
    ErrorCode.UNKNOWN_PRODUCER_ID: "The broker remembers nothing of this producer; its records may have expired.",
    ErrorCode.REASSIGNMENT_IN_PROGRESS: "The partition is being moved to other brokers already.",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "Delegation tokens are not enabled in this cluster.",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "There is no such delegation token.",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: (
        "The principal is neither the owner nor a renewer of the delegation token."
    ),
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "Delegation tokens cannot be handled on a connection that proves no identity of its own."
    ),
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "The principal may not do this to the delegation token.",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "The delegation token's life is over.",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "This type of principal is not supported.",
    ErrorCode.NON_EMPTY_GROUP: "The group still has members.",
    ErrorCode.GROUP_ID_NOT_FOUND: "There is no group of this id.",
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND: "The fetch session is not known here any more; start a new one.",
    ErrorCode.INVALID_FETCH_SESSION_EPOCH: "The request is not the next one of its fetch session; start a new one.",
    ErrorCode.LISTENER_NOT_FOUND: "The partition's leader has no listener of the name that this client connected to.",
    ErrorCode.TOPIC_DELETION_DISABLED: "Topics cannot be deleted in this cluster (delete.topic.enable).",
    ErrorCode.FENCED_LEADER_EPOCH: "The client's leader epoch is older than the partition's; refresh the metadata.",
    ErrorCode.UNKNOWN_LEADER_EPOCH: (
        "The client's leader epoch is newer than this broker knows of; try again in a moment."
    ),
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "The compression of these records is not supported.",
    ErrorCode.STALE_BROKER_EPOCH: "The broker has registered anew since it sent this request.",
    ErrorCode.OFFSET_NOT_AVAILABLE: (
        "The new leader does not know yet how far its records are committed; try again in a moment."
    ),
    ErrorCode.MEMBER_ID_REQUIRED: "The member must join again with the id that this answer gives it.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader of the partition is not available.",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "The group has as many members as the broker allows.",
    ErrorCode.FENCED_INSTANCE_ID: "Another member has taken over this group.instance.id.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "No broker that could lead the partition is available.",
    ErrorCode.ELECTION_NOT_NEEDED: "The partition has the leader that the election would give it.",
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: "The partition is not being moved.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "The group still consumes the topic, so its offsets cannot be deleted.",
    ErrorCode.INVALID_RECORD: "A record breaks a rule of its topic.",
    ErrorCode.UNSTABLE_OFFSET_COMMIT: "An open transaction still holds offsets of this group; try again in a moment.",
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: "The client has used up its quota; try again after the given time.",
    ErrorCode.PRODUCER_FENCED: "A newer producer has taken over this transactional id.",
    ErrorCode.RESOURCE_NOT_FOUND: "The resource that the request names does not exist.",
    ErrorCode.DUPLICATE_RESOURCE: "The request names the same resource twice.",
    ErrorCode.UNACCEPTABLE_CREDENTIAL: "The credential does not meet the rules.",
    ErrorCode.INCONSISTENT_VOTER_SET: "Sender and receiver do not agree on who votes in the quorum.",
    ErrorCode.INVALID_UPDATE_VERSION: "The version to update to is not acceptable.",
    ErrorCode.FEATURE_UPDATE_FAILED: "The feature level could not be changed.",
    ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE: "The principal of a forwarded request could not be read.",
    ErrorCode.SNAPSHOT_NOT_FOUND: "There is no such snapshot.",
    ErrorCode.POSITION_OUT_OF_RANGE: "The position lies outside the snapshot.",
    ErrorCode.UNKNOWN_TOPIC_ID: "There is no topic of this id here; refresh the metadata.",
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: "A live broker has this id already.",
    ErrorCode.BROKER_ID_NOT_REGISTERED: "No broker of this id is registered.",
    ErrorCode.INCONSISTENT_TOPIC_ID: "The topic of this name has another id: it was deleted and created again.",
    ErrorCode.INCONSISTENT_CLUSTER_ID: "The request is meant for another cluster.",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "There is no such transactional id.",
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: "The fetch session mixes topic ids and topic names; start a new one.",
    ErrorCode.INELIGIBLE_REPLICA: "The new in-sync set has a broker that may not be part of it.",
    ErrorCode.NEW_LEADER_ELECTED: "The change was made, and it gave the partition another leader.",
    ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE: "The offset is only in tiered storage.",
    ErrorCode.FENCED_MEMBER_EPOCH: "The member's epoch is over; it must give up its partitions and join again.",
    ErrorCode.UNRELEASED_INSTANCE_ID: "Another member of the group still uses this instance id.",
    ErrorCode.UNSUPPORTED_ASSIGNOR: "The group does not support this assignor.",
    ErrorCode.STALE_MEMBER_EPOCH: "The member's epoch is out of date; it gets the new one with its next heartbeat.",
    ErrorCode.MISMATCHED_ENDPOINT_TYPE: (
        "The request went to a broker's listener instead of a controller's, or the reverse."
    ),
    ErrorCode.UNSUPPORTED_ENDPOINT_TYPE: "This type of endpoint is not supported.",
    ErrorCode.UNKNOWN_CONTROLLER_ID: "No controller of this id is known.",
    ErrorCode.UNKNOWN_SUBSCRIPTION_ID: "The metrics belong to a subscription that is out of date.",
    ErrorCode.TELEMETRY_TOO_LARGE: "The metrics are larger than the broker accepts.",
    ErrorCode.INVALID_REGISTRATION: "The controller does not accept this registration.",
    ErrorCode.TRANSACTION_ABORTABLE: (
        "The transaction cannot go on; the producer must abort it and may then begin another."
    ),
    ErrorCode.INVALID_RECORD_STATE: "The record is not in a state in which it can be acknowledged so.",
    ErrorCode.SHARE_SESSION_NOT_FOUND: "The share session is not known here any more; start a new one.",
    ErrorCode.INVALID_SHARE_SESSION_EPOCH: "The request is not the next one of its share session; start a new one.",
    ErrorCode.FENCED_STATE_EPOCH: "The state epoch of the share group is out of date.",
    ErrorCode.INVALID_VOTER_KEY: "The voter that the request means is not the one that received it.",
    ErrorCode.DUPLICATE_VOTER: "The voter is part of the quorum already.",
    ErrorCode.VOTER_NOT_FOUND: "The voter is not part of the quorum.",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "The regular expression cannot be read.",
    ErrorCode.REBOOTSTRAP_REQUIRED: (
        "The client's view of the cluster is too old; it must start again from its bootstrap servers."
    ),
    ErrorCode.STREAMS_INVALID_TOPOLOGY: "The topology of the streams group is not acceptable.",
    ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH: "The topology's epoch is not acceptable.",
    ErrorCode.STREAMS_TOPOLOGY_FENCED: "The topology's epoch is out of date.",
    ErrorCode.SHARE_SESSION_LIMIT_REACHED: "The broker holds as many share sessions as it allows.",
}


def shortened(text: str) -> str:
    """As much of it as a client is told."""
    return text if len(text) <= ERROR_TEXT_LENGTH_MAX else text[:ERROR_TEXT_LENGTH_MAX] + "..."


class KafkaError(Exception):
    """A refusal with a code from the table. `message` is what the client reads where the protocol has room for it."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        self.code = code
        self.message = None if message is None else shortened(message)
        super().__init__(self.message or code.name)


class DecodeError(Exception):
    """Bytes from the wire or the disk that do not follow their schema."""
