"""Whatever brokers and operators do, in whatever order: leaders are in sync, epochs only grow, who may have lost data
is not believed, and the eligible leader replicas are what KIP-966 says."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from penstock.core.controller.brokers import (
    decide_controlled_shutdown,
    decide_fence_broker,
    decide_register_broker,
    decide_unfence_broker,
    decide_unregister_broker,
)
from penstock.core.controller.changes import records_of
from penstock.core.controller.isr import decide_alter_partition
from penstock.core.controller.leaders import decide_elect_leaders, decide_preferred_leaders
from penstock.core.controller.reassignments import decide_alter_reassignments
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import Image, Partition
from penstock.protocol.generated.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.protocol.generated.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from penstock.protocol.generated.broker_registration_request import BrokerRegistrationRequest, Feature
from penstock.protocol.generated.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from penstock.protocol.generated.unregister_broker_request import UnregisterBrokerRequest
from penstock.protocol.message import Message
from tests.unit.core.controller.moves import ELR, ORDERS, cluster, directory, orders, partition, replayed

BROKERS = (1, 2, 3, 4)
PARTITIONS = (partition([1, 2, 3]), partition([2, 3, 4]), partition([3, 1]), partition([4]))
TOPIC = (2, "orders")
MIN_ISR = "min.insync.replicas"

brokers = st.sampled_from(BROKERS)
indexes = st.sampled_from(range(len(PARTITIONS)))
some_brokers = st.lists(brokers, unique=True, max_size=4)


class Controlled(RuleBasedStateMachine):
    """The controller's decisions, each replayed; brokers do what they like."""

    @initialize(min_isr=st.integers(1, 3), elr=st.booleans(), unclean=st.booleans())
    def begin(self, min_isr: int, elr: bool, unclean: bool) -> None:
        self.elr = elr
        self.node = Node(1, {MIN_ISR: str(min_isr), "unclean.leader.election.enable": str(unclean).lower()})
        self.image = cluster(*PARTITIONS, elr=elr)
        self.offset = 1_000
        self.leaders: dict[tuple[int, int], int] = {}
        """(partition, leader epoch) -> who led"""
        self.doubted: dict[tuple[int, int], None] = {}
        """(partition, broker): its log may lack what was committed, and nobody has seen it catch up"""
        self.configured = min_isr

    def take(self, records: list[Message], taken_in: Sequence[int] = ()) -> None:
        """`taken_in`: whom the leader of the one partition that changes says to have caught up."""
        before = self.image
        self.image = replayed(before, records)
        self.offset += len(records)
        for index in range(len(PARTITIONS)):
            self.compare(index, orders(before, index), orders(self.image, index), taken_in)

    def compare(self, index: int, before: Partition, after: Partition, taken_in: Sequence[int]) -> None:
        assert after.leader_epoch >= before.leader_epoch
        assert after.partition_epoch >= before.partition_epoch
        if before != after:
            assert after.partition_epoch > before.partition_epoch or self.cleared(before, after)
        if before.leader != after.leader:
            assert after.leader_epoch > before.leader_epoch
            # Taken in, a replica may lead at once: a reassignment that waited for it is complete.
            if after.leader not in (-1, *before.isr, *before.eligible, *taken_in):
                assert after.leader_recovery_state == 1
                self.doubted.pop((index, after.leader), None)  # what it has is the truth from now on

    @staticmethod
    def cleared(before: Partition, after: Partition) -> bool:
        """ClearElrRecord is no change that a leader need know."""
        return before._replace(eligible=(), last_known_eligible=()) == after

    @rule(broker=brokers)
    def fence(self, broker: int) -> None:
        found = self.image.brokers.get(broker)
        if found is not None and not found.fenced:
            self.take(decide_fence_broker(self.image, self.node, broker))

    @rule(broker=brokers)
    def unfence(self, broker: int) -> None:
        found = self.image.brokers.get(broker)
        if found is not None and found.fenced:
            self.take(decide_unfence_broker(self.image, self.node, broker))

    @rule(broker=brokers)
    def shut_down(self, broker: int) -> None:
        found = self.image.brokers.get(broker)
        if found is not None and found.active:
            self.take(decide_controlled_shutdown(self.image, self.node, broker))

    @rule(broker=brokers)
    def unregister(self, broker: int) -> None:
        result = decide_unregister_broker(self.image, self.node, UnregisterBrokerRequest(broker_id=broker))
        self.take(result.records)

    @rule(broker=brokers, clean=st.booleans())
    def register(self, broker: int, clean: bool) -> None:
        found = self.image.brokers.get(broker)
        features = [("metadata.version", 7, 30), (ELR, 0, 1)]
        request = BrokerRegistrationRequest(
            broker_id=broker,
            cluster_id="c",
            incarnation_id=self.offset.to_bytes(16, "big"),
            features=[Feature(name=n, min_supported_version=a, max_supported_version=b) for n, a, b in features],
            log_dirs=[directory(broker)],
            previous_broker_epoch=found.epoch if found is not None and clean else -1,
        )
        result = decide_register_broker(self.image, self.node, request, cluster_id="c", next_offset=self.offset)
        assert result.response.error_code == 0
        if not clean or found is None:
            self.doubted.update({(index, broker): None for index in range(len(PARTITIONS))})
        self.take(result.records)

    @rule(index=indexes, wanted=some_brokers, stale=st.booleans())
    def alter(self, index: int, wanted: list[int], stale: bool) -> None:
        """A leader asks for whatever ISR it likes; it names the epochs that it knows."""
        found = orders(self.image, index)
        leader = self.image.brokers.get(found.leader)
        if leader is None:
            return
        epochs = {one: self.image.brokers[one].epoch if one in self.image.brokers else -1 for one in wanted}
        data = PartitionData(
            partition_index=index,
            leader_epoch=found.leader_epoch - stale,
            partition_epoch=found.partition_epoch,
            new_isr_with_epochs=[BrokerState(broker_id=one, broker_epoch=epochs[one]) for one in wanted],
        )
        request = AlterPartitionRequest(
            broker_id=leader.id, broker_epoch=leader.epoch, topics=[TopicData(topic_id=ORDERS, partitions=[data])]
        )
        result = decide_alter_partition(self.image, self.node, request)
        if result.records:
            assert not stale
            for one in wanted:  # a leader takes in only who has caught up
                self.doubted.pop((index, one), None)
        self.take(result.records, wanted)

    @rule(index=indexes, kind=st.sampled_from([0, 1]))
    def elect(self, index: int, kind: int) -> None:
        asked = [TopicPartitions(topic="orders", partitions=[index])]
        request = ElectLeadersRequest(election_type=kind, topic_partitions=asked)
        self.take(decide_elect_leaders(self.image, self.node, request).records)

    @rule()
    def give_leaders_back(self) -> None:
        self.take(decide_preferred_leaders(self.image, self.node, 100))

    @rule(index=indexes, replicas=st.none() | some_brokers)
    def reassign(self, index: int, replicas: list[int] | None) -> None:
        before = orders(self.image, index)
        one = ReassignablePartition(partition_index=index, replicas=replicas)
        request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="orders", partitions=[one])])
        self.take(decide_alter_reassignments(self.image, self.node, request).records)
        after = orders(self.image, index)
        for broker in BROKERS:  # a replica that is made anew has nothing
            if broker in after.replicas and broker not in before.replicas:
                self.doubted[index, broker] = None
        if replicas is None and after.isr and after.isr[0] not in before.isr:
            self.doubted.pop((index, after.isr[0]), None)  # taken back uncleanly, as the topic allows

    @rule(min_isr=st.integers(1, 3))
    def reconfigure(self, min_isr: int) -> None:
        self.configured = min_isr
        self.take(records_of(self.image, TOPIC, {MIN_ISR: str(min_isr)}))

    @invariant()
    def holds(self) -> None:
        image: Image = self.image
        for index, found in image.topics["orders"].partitions.items():
            self.check_leader(index, found)
            self.check_eligible(found)
            for broker in found.isr + found.eligible:
                if self.elr:
                    assert (index, broker) not in self.doubted

    def check_leader(self, index: int, found: Partition) -> None:
        assert found.replicas
        assert set(found.isr) <= set(found.replicas)
        if found.leader >= 0:
            assert found.leader in found.isr
            assert self.image.brokers[found.leader].active
            assert self.leaders.setdefault((index, found.leader_epoch), found.leader) == found.leader

    def check_eligible(self, found: Partition) -> None:
        assert not set(found.isr) & set(found.eligible)
        assert set(found.eligible) <= set(found.replicas)
        if not self.elr:
            assert found.isr
            assert not found.eligible
            return
        if not found.isr and not found.eligible:
            assert len(found.last_known_eligible) == 1
        if found.isr:
            assert found.leader >= 0, "whoever is in sync is alive, and leads"
        if len(found.isr) >= min(self.configured, len(found.replicas)):
            assert not found.eligible


Controlled.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestControlled = Controlled.TestCase
