"""The authorizer: may this principal, from this host, do that to this resource?

There are no ACLs yet, so everything is allowed; every handler asks all the same, and rules can come in here alone.
"""

from __future__ import annotations

from typing import Protocol

from penstock.core.security.acl import OPERATIONS, Operation, Resource
from penstock.core.security.principals import Principal

OPERATIONS_NOT_ASKED = -2147483648
"""the protocol's "nobody asked" value of `authorized_operations`"""


class Authorizer(Protocol):
    def allows(self, who: Principal, host: str, operation: Operation, resource: Resource, name: str) -> bool: ...


class AllowAll:
    """What a broker without `authorizer.class.name` has."""

    def allows(self, who: Principal, host: str, operation: Operation, resource: Resource, name: str) -> bool:
        return True


def operation_bits(authorizer: Authorizer, who: Principal, host: str, resource: Resource, name: str) -> int:
    """`authorized_operations` on the wire: bit n is set where operation n is allowed."""
    return sum(1 << op for op in OPERATIONS[resource] if authorizer.allows(who, host, op, resource, name))
