"""Operations and resource types, with the numbers that the protocol and the metadata records give them."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Operation(IntEnum):
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


class Resource(IntEnum):
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


CLUSTER_NAME = "kafka-cluster"
"""the one resource of type CLUSTER"""


class Acl(NamedTuple):
    """What a request needs: an operation on a resource of this type."""

    operation: Operation
    resource: Resource

    def __str__(self) -> str:
        return f"{self.operation.name} {self.resource.name}"


_TOPIC_OPERATIONS = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
_GROUP_OPERATIONS = (
    Operation.READ,
    Operation.DELETE,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
_CLUSTER_OPERATIONS = (
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)

OPERATIONS: dict[Resource, tuple[Operation, ...]] = {
    Resource.TOPIC: _TOPIC_OPERATIONS,
    Resource.GROUP: _GROUP_OPERATIONS,
    Resource.CLUSTER: _CLUSTER_OPERATIONS,
}
"""every operation that makes sense on a resource: what `authorized_operations` can name"""
