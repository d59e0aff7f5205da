"""Groups as kafka_exporter tells them: members, committed offsets, and how far they are behind.

A group is told by its coordinator. The lag is the watermark less the committed offset, where the partition is led here
too. Partitions that the group has never committed for have no sample: there is nothing to be behind of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from penstock.broker.metrics.sources import Sources
from penstock.broker.metrics.text import Exposition, escaped
from penstock.broker.partitions import Partitions
from penstock.core.groups.committed import PartitionOffsets
from penstock.core.groups.consumer.group import ConsumerGroupState
from penstock.core.groups.shard import GroupShard
from penstock.core.groups.states import GroupState

_AT_ONCE = 128
"""offsets and groups looked at before the loop gets its turn"""
_COUNTED = "kafka_coordinator_group_groupmetadatamanager_num"
_CONSUMERS = "kafka_server_group_coordinator_metrics_consumer_group_count"
_SHARES = "kafka_server_group_coordinator_metrics_share_group_count"


def groups(sources: Sources, out: Exposition) -> Iterator[None]:
    told = _Told(out, sources.services.partitions)
    states: Counter[GroupState] = Counter()
    consumers: Counter[ConsumerGroupState] = Counter()
    shares: Counter[GroupState] = Counter()
    looked_at = 0
    for shard in list(sources.services.coordinators.shards()):
        for group_id, members, state in _present(shard):
            told.members(group_id, members)
            states[state] += 1
            looked_at += 1
            if looked_at % _AT_ONCE == 0:
                yield
        for group in list(shard.state.store.consumers.values()):
            told.members(group.group_id, len(group.members))
            consumers[group.state] += 1
        for share in list(shard.state.store.shares.values()):
            told.members(share.group_id, len(share.members))
            shares[GroupState.STABLE if share.members else GroupState.EMPTY] += 1
        for group_id, topics in list(shard.state.store.offsets.items()):
            for topic, committed in list(topics.items()):
                told.offsets(group_id, topic, committed)
                looked_at += len(committed)
                if looked_at >= _AT_ONCE:
                    looked_at = 0
                    yield
    _tell_counts(out, states, told.offset_count)
    _tell_consumers(out, consumers)
    _tell_shares(out, shares)
    yield


def _present(shard: GroupShard) -> list[tuple[str, int, GroupState]]:
    """Every classic group of the shard with its members; one that has offsets only is empty."""
    state = shard.state
    present = [(group.group_id, len(group.members), group.state) for group in state.groups.values()]
    present += [(group_id, 0, GroupState.EMPTY) for group_id in state.store.offsets if _is_simple(shard, group_id)]
    return present


def _is_simple(shard: GroupShard, group_id: str) -> bool:
    return group_id not in shard.state.groups and shard.state.store.is_classic(group_id)


def _tell_consumers(out: Exposition, states: Counter[ConsumerGroupState]) -> None:
    tell = out.family(_CONSUMERS, "gauge", "Consumer groups (KIP-848) coordinated here, by their state").append
    for state in ConsumerGroupState:
        tell(f'{_CONSUMERS}{{state="{state.value.lower()}"}} {states[state]}\n')


def _tell_shares(out: Exposition, states: Counter[GroupState]) -> None:
    tell = out.family(_SHARES, "gauge", "Share groups coordinated here, by their state").append
    for state in (GroupState.EMPTY, GroupState.STABLE):
        tell(f'{_SHARES}{{state="{state.value.lower()}"}} {states[state]}\n')


def _tell_counts(out: Exposition, states: Counter[GroupState], offsets: int) -> None:
    out.gauge(f"{_COUNTED}groups", "Groups coordinated here", states.total())
    for state in GroupState:
        out.gauge(f"{_COUNTED}groups{state.value.lower()}", f"Groups in state {state.value}", states[state])
    out.gauge(f"{_COUNTED}offsets", "Committed offsets kept here", offsets)


class _Told:
    def __init__(self, out: Exposition, partitions: Partitions) -> None:
        def gauge(name: str, documentation: str) -> Callable[[str], None]:
            return out.family(f"kafka_consumergroup_{name}", "gauge", documentation).append

        self.offset_count = 0
        self._partitions = partitions
        self._members = gauge("members", "Members of a group")
        self._offset = gauge("current_offset", "The offset a group has committed")
        self._offset_sum = gauge("current_offset_sum", "The offsets a group has committed, over a topic's partitions")
        self._lag = gauge("lag", "Records between the committed offset and the high watermark")
        self._lag_sum = gauge("lag_sum", "The lag, over a topic's partitions")

    def members(self, group_id: str, count: int) -> None:
        self._members(f'kafka_consumergroup_members{{consumergroup="{escaped(group_id)}"}} {count}\n')

    def offsets(self, group_id: str, topic: str, committed: PartitionOffsets) -> None:
        names = f'consumergroup="{escaped(group_id)}",topic="{escaped(topic)}"'
        offset_sum = lag_sum = 0
        lag_known = False
        for index, offset in committed.numbers():
            labels = f'{{{names},partition="{index}"}}'
            self._offset(f"kafka_consumergroup_current_offset{labels} {offset}\n")
            offset_sum += offset
            partition = self._partitions.get(topic, index)
            if partition is not None:
                lag = partition.high_watermark - offset
                self._lag(f"kafka_consumergroup_lag{labels} {lag}\n")
                lag_sum += lag
                lag_known = True
        self.offset_count += len(committed)
        self._offset_sum(f"kafka_consumergroup_current_offset_sum{{{names}}} {offset_sum}\n")
        if lag_known:
            self._lag_sum(f"kafka_consumergroup_lag_sum{{{names}}} {lag_sum}\n")
