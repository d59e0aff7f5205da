"""The states of a classic group and every legal step between them."""

from __future__ import annotations

from enum import Enum


class GroupState(Enum):
    """Named as DescribeGroups and ListGroups say them."""

    EMPTY = "Empty"
    """no members; it may hold offsets"""
    PREPARING_REBALANCE = "PreparingRebalance"
    """waiting for members to join"""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """everybody knows the generation; waiting for the leader's assignment to be stored"""
    STABLE = "Stable"
    """the stored assignment is in force"""
    DEAD = "Dead"
    """gone: deleted, or coordinated elsewhere"""


TRANSITIONS: dict[GroupState, tuple[GroupState, ...]] = {
    GroupState.EMPTY: (GroupState.PREPARING_REBALANCE, GroupState.DEAD),
    GroupState.PREPARING_REBALANCE: (GroupState.COMPLETING_REBALANCE, GroupState.EMPTY, GroupState.DEAD),
    GroupState.COMPLETING_REBALANCE: (GroupState.STABLE, GroupState.PREPARING_REBALANCE, GroupState.DEAD),
    GroupState.STABLE: (GroupState.PREPARING_REBALANCE, GroupState.DEAD),
    GroupState.DEAD: (),
}


def may_rebalance(state: GroupState) -> bool:
    return GroupState.PREPARING_REBALANCE in TRANSITIONS[state]
