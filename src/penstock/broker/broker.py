"""The composition root: one broker, its rooms put together, started in order and stopped in the reverse.

Start: ports are bound, so that they are known; the data directory is opened or formatted; metadata is replayed; logs
are recovered; the broker registers itself; coordinators load; only then are connections taken.
Stop: no more connections, coordinators stop, everything is synced, the clean-shutdown marker is written last.
"""

from __future__ import annotations

import asyncio

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC, random_id
from penstock.base.ports import Disk
from penstock.broker.admin import Admin
from penstock.broker.apis import controller_served, served
from penstock.broker.config import BrokerConfig
from penstock.broker.controller import Controller
from penstock.broker.controller_duties import ControllerDuties
from penstock.broker.controller_link import ControllerLink, Local
from penstock.broker.coordinator_lookup import CoordinatorLookup
from penstock.broker.coordinators import Coordinators
from penstock.broker.copying import Copying
from penstock.broker.dynamic_configs import DynamicConfigs
from penstock.broker.fetching import Fetching
from penstock.broker.group_settings import group_settings
from penstock.broker.housekeeping import Housekeeping
from penstock.broker.journal import Journal
from penstock.broker.lifecycle import Lifecycle, last_clean_epoch
from penstock.broker.listener import Listener
from penstock.broker.metrics.sources import RaftState, Sources
from penstock.broker.metrics.watch import Watch
from penstock.broker.network.budget import Budget
from penstock.broker.network.door import Door
from penstock.broker.network.session import Peer, Session
from penstock.broker.network.table import Table
from penstock.broker.partitions import Partitions
from penstock.broker.producer_ids import ProducerIds, reserve_block
from penstock.broker.quorum import Quorum
from penstock.broker.services import Services
from penstock.broker.sharing import Sharing
from penstock.broker.state_topic import StateTopic
from penstock.broker.streams_groups import StreamsGroups
from penstock.broker.telemetry import Telemetry
from penstock.broker.topic_creation import TopicCreation
from penstock.broker.transacting import Transacting
from penstock.broker.waiters import Waiters
from penstock.broker.world import RealWorld, Threads, World
from penstock.core.metadata.delta import Delta
from penstock.core.metadata.effective import Node, broker_typed, topic_config, topic_defaults
from penstock.core.metadata.image import Image
from penstock.core.raft.voters import VoterEndpoint
from penstock.core.replication.fetch_session import FetchSessions
from penstock.core.security.authorizer import AllowAll
from penstock.core.security.principals import ANONYMOUS
from penstock.protocol.frames import RequestHeader
from penstock.protocol.message import Message

log = Journal(__name__)

_FRAME_DEADLINE_MS = 30_000
_RACK_AWARE = "RackAwareReplicaSelector"
"""the one selector of replicas there is, by the name of Kafka's class"""
_PRODUCER_EXPIRATION = "producer.id.expiration.ms"
"""a broker's configuration that every log needs"""


class Broker:
    def __init__(self, config: BrokerConfig, world: World | None = None) -> None:
        self.config = config
        self.address = ""
        """HOST:PORT of the first listener for clients, once started"""
        self.admin_port: int | None = None
        self.listeners: list[Listener] = []
        self.controller_listeners: list[Listener] = []
        self.services: Services
        self._node = Node(config.node_id, config.values)
        self._world = world or RealWorld()
        self._clock = self._world.clock
        self._random = self._world.random
        self._budget = Budget()
        self._table = served()
        self._controller_table = controller_served()
        self._watch = Watch(self._clock, self._clock.fine_s)
        self._sources: Sources
        self._admin: Admin | None = None
        self._joined = False
        """This life of the broker is known to the controller. Until then the metadata tells of its last one: who would
        write by it as a leader would write other records than that one did, in the same epoch."""
        self._lost = asyncio.Event()
        self._fault: KafkaError | None = None
        """what `lost` tells"""
        self._defaults_of: object = None
        self._defaults: dict[str, str] = {}
        """every topic configuration as a topic has it that sets none, under the configurations `_defaults_of`"""
        self._jobs: Threads
        self._quorum: Quorum
        self._housekeeping: Housekeeping
        self._copying: Copying
        self._transacting: Transacting
        self._sharing: Sharing
        self._duties: ControllerDuties

    async def start(self) -> None:
        config = self.config
        for name in config.unknown:
            log.warning("an unknown configuration is ignored", name=name)
        self.listeners = [Listener(address, self._world) for address in config.client_listeners]
        self.controller_listeners = [Listener(address, self._world) for address in config.controller_listeners]
        try:
            await self._open()
        except BaseException:
            await self.abandon()
            raise

    async def lost(self) -> KafkaError:
        """Until this node's metadata log has failed for good, and why: the process must end. It would not hear who
        leads what any more, and go on as if nothing had changed."""
        await self._lost.wait()
        assert self._fault is not None
        return self._fault

    async def abandon(self) -> None:
        """Nobody is served any more; the disk stays as it is, as after a crash."""
        for listener in self.listeners + self.controller_listeners:
            await listener.close()
        if self._admin is not None:
            await self._admin.close()

    def _lose(self, reason: str) -> None:
        self._fault = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the metadata log failed: {reason}")
        self._lost.set()

    async def stop(self) -> None:
        self._sources.stopping()
        await self.services.lifecycle.leave()
        for listener in self.listeners:
            await listener.close()
        await self._housekeeping.stop()
        await self.services.streams_groups.close()
        await self._sharing.close()
        await self._transacting.close()
        await self.services.coordinators.close()
        await self._copying.close()
        await self._duties.stop()
        await self.services.lifecycle.close()
        await self.services.partitions.close(self.services.lifecycle.broker_epoch)
        await self.services.link.close()
        await self._quorum.close()
        for listener in self.controller_listeners:
            await listener.close()
        if self._admin is not None:
            await self._admin.close()
        self._jobs.close()
        log.info("stopped", node=self.config.node_id)

    async def _open(self) -> None:
        config = self.config
        self._jobs = self._world.jobs()
        self._sources = Sources(
            config.node_id, self._clock, self._jobs, self.listeners, self._table, self._budget, self._watch
        )
        if config.admin_listener is not None:
            self._admin = Admin(config.admin_listener, self._sources)
            self.admin_port = await self._admin.start()
        disk = self._world.disk(config.log_dir)
        self._quorum = quorum = await Quorum.open(
            disk, config, self._clock, self._random, self._jobs, endpoints=self._controller_endpoints()
        )
        quorum.on_failure = self._lose
        previous_epoch = last_clean_epoch(disk)
        partitions = self._partitions(disk)
        controller = Controller(quorum, self._node, config, self._clock)
        link = ControllerLink(quorum, self._clock, self._random)
        lifecycle = Lifecycle(config, quorum, link, self._clock, lambda: partitions.refusal)
        lifecycle.on_silence = self._send_clients_away
        self._copying = self._copies(partitions, lifecycle)
        creation = TopicCreation(link, quorum, self._node)
        coordinators = self._coordinators(partitions, creation)
        producer_ids = ProducerIds(lambda: reserve_block(link, config.node_id, lifecycle.broker_epoch))
        self._transacting = self._transactions(partitions, coordinators, producer_ids, creation)
        self._sharing = self._shares(partitions, coordinators, creation)
        self.services = Services(
            config=config,
            node=self._node,
            clock=self._clock,
            random=self._random,
            jobs=self._jobs,
            quorum=quorum,
            controller=controller,
            link=link,
            lifecycle=lifecycle,
            partitions=partitions,
            copying=self._copying,
            fetching=self._fetching(partitions),
            waiters=partitions.waiters,
            coordinators=coordinators,
            lookup=CoordinatorLookup(config.node_id, lambda: quorum.image, self._transacting.peers, self._clock),
            producer_ids=producer_ids,
            transactions=self._transacting.transactions,
            marker_writing=self._transacting.writing,
            verification=self._transacting.verification,
            share_coordinators=self._sharing.coordinators,
            share_states=self._sharing.states,
            shares=self._sharing.shares,
            share_groups=self._sharing.groups,
            streams_groups=StreamsGroups(coordinators, creation.create, self._clock),
            telemetry=Telemetry(config.number("telemetry.max.bytes")),
            topic_creation=creation,
        )
        for listener in self.controller_listeners:
            await listener.serve(self._door(listener, self._controller_table))
        await quorum.settled()
        self._housekeeping = Housekeeping(
            config, partitions, self._clock, self._jobs, self._world.compact, self._copying.repairing.step
        )
        link.local = self._local(self._controller_table)
        self._duties = ControllerDuties(controller, config, self._clock, self._random)
        self._duties.start()
        if config.is_broker:
            await self._serve_clients(previous_epoch)
        else:
            await lifecycle.announce_controller(random_id(self._random))
            self.address = f"{quorum.controller_endpoints[0].host}:{quorum.controller_endpoints[0].port}"
        self._sources.ready(self.services, self._raft_state)

    async def _serve_clients(self, previous_epoch: int) -> None:
        """Become a broker of the cluster, with what the metadata says as of now."""
        partitions, lifecycle, quorum = self.services.partitions, self.services.lifecycle, self._quorum
        partitions.open(quorum.image)
        quorum.subscribe(self._follow)
        bound = {listener.address.name: listener.port for listener in self.listeners}
        advertised = self.config.advertised(bound)
        incarnation = random_id(self._random)
        partitions.directory.sign(incarnation)
        await lifecycle.join(advertised, incarnation, previous_epoch)
        self._joined = True
        self._copying.start(self.services.link)
        self.services.coordinators.follow(quorum.image)
        self._coordinate(quorum.image)
        self._housekeeping.start()
        for listener in self.listeners:
            await listener.serve(self._door(listener, self._table))
        DynamicConfigs(self._node, self.listeners, self._housekeeping).start(quorum)
        self.address = f"{advertised[0].host}:{advertised[0].port}"

    def _coordinators(self, partitions: Partitions, creation: TopicCreation) -> Coordinators:
        offsets = StateTopic(OFFSETS_TOPIC, partitions, lambda: self._quorum.image)
        settings = group_settings(self.config)
        return Coordinators(settings, offsets, self._clock, self._random, creation.create_offsets_topic)

    def _transactions(
        self, partitions: Partitions, coordinators: Coordinators, producer_ids: ProducerIds, creation: TopicCreation
    ) -> Transacting:
        return Transacting(
            self.config,
            lambda: self._quorum.image,
            partitions,
            coordinators,
            producer_ids,
            creation.create_transactions_topic,
            self._clock,
            self._random,
        )

    def _shares(self, partitions: Partitions, coordinators: Coordinators, creation: TopicCreation) -> Sharing:
        return Sharing(
            self.config,
            lambda: self._quorum.image,
            partitions,
            coordinators,
            creation.create_share_state_topic,
            creation.create_missing,
            self._clock,
            self._random,
        )

    def _partitions(self, disk: Disk) -> Partitions:
        config = self.config
        partitions = Partitions(
            disk, config.log_dir, self._clock, self._jobs, self._random, Waiters(), config.node_id, self._topic_values
        )
        partitions.cluster.lag_max_ms = config.number("replica.lag.time.max.ms")
        return partitions

    def _copies(self, partitions: Partitions, lifecycle: Lifecycle) -> Copying:
        return Copying(
            self.config,
            self._node,
            self._quorum,
            partitions,
            self._clock,
            self._random,
            self._jobs,
            lambda: lifecycle.broker_epoch,
        )

    def _fetching(self, partitions: Partitions) -> Fetching:
        sessions = FetchSessions(self._random, self.config.number("max.incremental.fetch.session.cache.slots"))
        return Fetching(
            partitions,
            sessions,
            self.config.number("fetch.max.bytes"),
            change_isr=self._copying.isr.change,
            throttle=self._copying.quotas.leader,
            closest=self.config.text("replica.selector.class").endswith(_RACK_AWARE),
        )

    def _raft_state(self) -> RaftState:
        quorum = self._quorum
        return RaftState(
            quorum.role, quorum.leader_id, quorum.epoch, quorum.voted_id, quorum.high_watermark, quorum.end_offset
        )

    def _controller_endpoints(self) -> tuple[VoterEndpoint, ...]:
        """Where the other nodes reach this one's controller."""
        bound = {listener.address.name: listener.port for listener in self.controller_listeners}
        told = self.config.advertised_controllers(bound)
        return tuple(VoterEndpoint(one.name, one.host, one.port) for one in told)

    def _local(self, table: Table) -> Local:
        """What this broker asks of the controller, where that is in the same process."""
        listener = self.config.controller_listener_names[0]
        session = Session(Peer(ANONYMOUS, "localhost", 0, listener), table, AllowAll(), self.services, self._watch)

        async def handle(message: Message) -> Message:
            row = table.find(message.API_KEY)
            assert row is not None, "a broker asks only what controllers serve"
            answer: Message = await session.answer(row, RequestHeader(row.key, row.max_version, 0, None), message)
            return answer

        return handle

    def _door(self, listener: Listener, table: Table) -> Door:
        config = self.config
        services, authorizer, watch = self.services, AllowAll(), self._watch
        name = listener.address.name

        def make_session(host: str, port: int) -> Session:
            return Session(Peer(ANONYMOUS, host, port, name), table, authorizer, services, watch)

        return Door(
            make_session,
            self._clock,
            self._budget,
            request_bytes_max=config.number("socket.request.max.bytes"),
            connections_max=config.number("max.connections"),
            connections_per_host_max=config.number("max.connections.per.ip"),
            idle_ms=config.number("connections.max.idle.ms"),
            frame_deadline_ms=_FRAME_DEADLINE_MS,
        )

    def _send_clients_away(self) -> None:
        for listener in self.listeners:
            if listener.door is not None:
                listener.door.send_away()

    def _topic_values(self, image: Image, topic: str) -> dict[str, str]:
        if image.configs is not self._defaults_of:
            self._defaults_of, self._defaults = image.configs, topic_defaults(image, self._node)
            self._defaults[_PRODUCER_EXPIRATION] = str(broker_typed(image, self._node, _PRODUCER_EXPIRATION))
        return topic_config(image, self._node, topic, self._defaults)

    def _follow(self, delta: Delta, image: Image) -> None:
        """The metadata log moved on: partitions first, then who coordinates on them."""
        changes = self.services.partitions.apply(delta, image)
        self._copying.follow(changes, delta, image)
        if self._joined:
            self.services.coordinators.follow(image, [*delta.changed_topics, *delta.deleted_topics])
            self._coordinate(image)
        deleted = [(topic.name, topic.id) for topic in delta.deleted_topics.values()]
        if deleted:
            self.services.forget_topics(deleted)

    def _coordinate(self, image: Image) -> None:
        self.services.coordinators.lead(image.led_by(OFFSETS_TOPIC, self.config.node_id))
        self.services.transactions.lead(image.led_by(TRANSACTIONS_TOPIC, self.config.node_id))
        self.services.share_coordinators.lead(image.led_by(SHARE_STATE_TOPIC, self.config.node_id))
