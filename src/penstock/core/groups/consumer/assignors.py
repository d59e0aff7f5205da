"""Who is to have which partition: pure functions over columns of numbers.

Topics, members and partitions are numbered. Partitions of all topics stand in one row, topic after topic; an owner
column has a member for each of them, -1 for nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush, heapreplace

NOBODY = -1

Assignor = Callable[[Sequence[int], Sequence[Sequence[int]], list[int]], list[int]]
"""(partitions of each topic, topics of each member in ascending order, owners now) -> owners to be"""


def range_(counts: Sequence[int], subscriptions: Sequence[Sequence[int]], owners: list[int]) -> list[int]:
    """Each topic in as many runs as it has subscribers, in their order: partitions of one number of topics with equal
    counts and subscribers come together. Who owns what now makes no difference."""
    assigned = [NOBODY] * sum(counts)
    start = 0
    for count, subscribers in zip(counts, _subscribers(len(counts), subscriptions), strict=True):
        if subscribers:
            each, extra = divmod(count, len(subscribers))
            at = start
            for rank, member in enumerate(subscribers):
                end = at + each + (rank < extra)
                assigned[at:end] = [member] * (end - at)
                at = end
        start += count
    return assigned


def uniform(counts: Sequence[int], subscriptions: Sequence[Sequence[int]], owners: list[int]) -> list[int]:
    """Members get as many partitions as each other, as far as subscriptions allow, and few partitions move."""
    if not subscriptions:
        return [NOBODY] * sum(counts)
    if all(topics == subscriptions[0] for topics in subscriptions):
        return _even(counts, subscriptions[0], len(subscriptions), owners)
    return _uneven(counts, subscriptions, owners)


def _even(counts: Sequence[int], topics: Sequence[int], members: int, owners: list[int]) -> list[int]:
    """Everybody subscribes to the same. Each keeps up to its share; what is left fills those below theirs."""
    partitions = _partitions_of(counts, topics)
    share, extra = divmod(len(partitions), members)
    assigned = [NOBODY] * sum(counts)
    loads = [0] * members
    free: list[int] = []
    for partition in partitions:
        owner = owners[partition]
        if owner != NOBODY and (loads[owner] < share or (loads[owner] == share and extra)):
            extra -= loads[owner] == share
            loads[owner] += 1
            assigned[partition] = owner
        else:
            free.append(partition)
    at = 0
    for limit in (share, share + 1):
        for member in range(members):
            while at < len(free) and loads[member] < limit:
                assigned[free[at]] = member
                loads[member] += 1
                at += 1
    return assigned


def _uneven(counts: Sequence[int], subscriptions: Sequence[Sequence[int]], owners: list[int]) -> list[int]:
    """Everybody keeps what it may keep, free partitions go to who has least, and then, topic by topic, partitions move
    from who has more to who has less, until no move would help."""
    subscribers = _subscribers(len(counts), subscriptions)
    starts = _starts(counts)
    wants = [frozenset(topics) for topics in subscriptions]
    assigned = [NOBODY] * sum(counts)
    loads = [0] * len(subscriptions)
    for topic, count in enumerate(counts):
        for partition in range(starts[topic], starts[topic] + count):
            owner = owners[partition]
            if owner != NOBODY and topic in wants[owner]:
                assigned[partition] = owner
                loads[owner] += 1
    shared = sorted((topic for topic in range(len(counts)) if subscribers[topic]), key=lambda t: len(subscribers[t]))
    for topic in shared:
        partitions = range(starts[topic], starts[topic] + counts[topic])
        _fill([one for one in partitions if assigned[one] == NOBODY], subscribers[topic], assigned, loads)
    moved = True
    while moved:
        moved = False
        for topic in shared:
            partitions = range(starts[topic], starts[topic] + counts[topic])
            moved |= _level(partitions, subscribers[topic], assigned, loads)
    return assigned


def _fill(free: list[int], subscribers: list[int], assigned: list[int], loads: list[int]) -> None:
    heap = [(loads[member], member) for member in subscribers]
    heapify(heap)
    for partition in free:
        load, member = heap[0]
        assigned[partition] = member
        loads[member] = load + 1
        heapreplace(heap, (load + 1, member))


def _level(partitions: range, subscribers: list[int], assigned: list[int], loads: list[int]) -> bool:
    """Move partitions of one topic while somebody has two more than somebody else. Every move lowers the sum of the
    squares of the loads, so this ends. Entries of the heaps that have been overtaken are skipped."""
    held: dict[int, list[int]] = {member: [] for member in subscribers}
    for partition in partitions:
        held[assigned[partition]].append(partition)
    most = [(-loads[member], member) for member in subscribers]
    least = [(loads[member], member) for member in subscribers]
    heapify(most)
    heapify(least)
    moved = False
    while most:
        giver, taker = most[0][1], least[0][1]
        if -most[0][0] != loads[giver] or not held[giver]:
            heappop(most)
        elif least[0][0] != loads[taker]:
            heappop(least)
        elif loads[giver] - loads[taker] < 2:
            break
        else:
            partition = held[giver].pop()
            held[taker].append(partition)
            assigned[partition] = taker
            loads[giver] -= 1
            loads[taker] += 1
            for member in (giver, taker):
                heappush(most, (-loads[member], member))
                heappush(least, (loads[member], member))
            moved = True
    return moved


def _subscribers(topics: int, subscriptions: Sequence[Sequence[int]]) -> list[list[int]]:
    subscribers: list[list[int]] = [[] for _ in range(topics)]
    for member, wanted in enumerate(subscriptions):
        for topic in wanted:
            subscribers[topic].append(member)
    return subscribers


def _starts(counts: Sequence[int]) -> list[int]:
    starts, at = [], 0
    for count in counts:
        starts.append(at)
        at += count
    return starts


def _partitions_of(counts: Sequence[int], topics: Sequence[int]) -> list[int]:
    starts = _starts(counts)
    return [partition for topic in topics for partition in range(starts[topic], starts[topic] + counts[topic])]


ASSIGNORS: dict[str, Assignor] = {"uniform": uniform, "range": range_}
