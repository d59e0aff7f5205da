"""Who may give a damaged copy what it lacks, and when it may begin anew."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.core.metadata.image import NO_LEADER, Broker
from penstock.core.metadata.image import Partition as Described


def sources(described: Described, node_id: int, brokers: Mapping[int, Broker], *, is_known: bool) -> list[int]:
    """Whom to ask, in order: the leader, who is in sync with it, and, only where what was written is known to the byte,
    who is not: it may have other records, which would be told by their bytes."""
    asked = [described.leader, *described.isr, *(described.replicas if is_known else ())]
    found = [one for one in dict.fromkeys(asked) if one not in (node_id, NO_LEADER)]
    return [one for one in found if one in brokers and not brokers[one].fenced]


def may_begin_anew(described: Described, node_id: int, brokers: Mapping[int, Broker]) -> bool:
    """Whether a copy may be cut: nothing depends on it, and a leader has all that was committed. A member of the ISR,
    or one that is eligible to lead, may be the one copy that others count on."""
    leader = brokers.get(described.leader)
    if described.leader == node_id or leader is None or leader.fenced or described.leader not in described.isr:
        return False
    return node_id not in described.isr and node_id not in described.eligible
