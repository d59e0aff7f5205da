"""The `simple` assignor: partitions shared out evenly among the members that subscribe to them, as few moved as can be.

Where there are more members than partitions, several members have the same one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.core.groups.modern.assignment import Assignment

NAME = "simple"

Place = tuple[bytes, int]
"""a partition, by its topic's id"""


def assign(
    subscriptions: Mapping[str, Sequence[bytes]],
    partitions: Mapping[bytes, Sequence[int]],
    now: Mapping[str, Assignment],
) -> dict[str, Assignment]:
    """By member: `subscriptions` names topics by id, `partitions` says which of each may be had, `now` who has what."""
    found: dict[str, list[Place]] = {member: [] for member in subscriptions}
    held = {member: _places(now.get(member, {})) for member in subscriptions}
    for members, topics in _rooms(subscriptions, partitions):
        places = [(topic, index) for topic in topics for index in sorted(partitions[topic])]
        _share_out(members, places, held, found)
    return {member: _assignment(places) for member, places in found.items()}


def _rooms(
    subscriptions: Mapping[str, Sequence[bytes]], partitions: Mapping[bytes, Sequence[int]]
) -> list[tuple[tuple[str, ...], list[bytes]]]:
    """Topics with the same subscribers are shared out together; mostly all of them are."""
    subscribers: dict[bytes, list[str]] = {}
    for member in sorted(subscriptions):
        for topic in dict.fromkeys(subscriptions[member]):
            if partitions.get(topic):
                subscribers.setdefault(topic, []).append(member)
    rooms: dict[tuple[str, ...], list[bytes]] = {}
    for topic in sorted(subscribers):
        rooms.setdefault(tuple(subscribers[topic]), []).append(topic)
    return list(rooms.items())


def _share_out(
    members: Sequence[str],
    places: Sequence[Place],
    held: Mapping[str, dict[Place, None]],
    found: dict[str, list[Place]],
) -> None:
    """Every place gets the same number of members, every member the same number of places or one more."""
    sharing = -(-len(members) // len(places))
    base, extra = divmod(sharing * len(places), len(members))
    here = frozenset(places)
    kept = {member: [place for place in held[member] if place in here] for member in members}
    ordered = sorted(members, key=lambda member: (len(found[member]), -len(kept[member]), member))
    quotas = {member: base + (at < extra) for at, member in enumerate(ordered)}
    wanted = dict.fromkeys(places, sharing)
    for member in ordered:
        for place in kept[member]:
            if quotas[member] and wanted[place]:
                _give(member, place, quotas, wanted, found)
    _fill(ordered, quotas, wanted, found)


def _fill(
    ordered: Sequence[str], quotas: dict[str, int], wanted: dict[Place, int], found: dict[str, list[Place]]
) -> None:
    """Those with nothing first. A place that a member has already is passed over, and stays for the next."""
    for member in sorted(ordered, key=lambda member: bool(found[member])):
        mine = frozenset(found[member])
        for place in sorted(wanted, key=lambda place: -wanted[place]) if quotas[member] else ():
            if not quotas[member]:
                break
            if wanted[place] and place not in mine:
                _give(member, place, quotas, wanted, found)


def _give(
    member: str, place: Place, quotas: dict[str, int], wanted: dict[Place, int], found: dict[str, list[Place]]
) -> None:
    quotas[member] -= 1
    wanted[place] -= 1
    found[member].append(place)


def _places(assignment: Assignment) -> dict[Place, None]:
    return {(topic, index): None for topic, partitions in assignment.items() for index in partitions}


def _assignment(places: Sequence[Place]) -> Assignment:
    found: Assignment = {}
    for topic, index in sorted(places):
        found.setdefault(topic, []).append(index)
    return found
