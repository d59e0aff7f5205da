"""This broker's life in the cluster: it registers, sends heartbeats, is unfenced once it is ready, and leaves in order.

Registered, it is fenced until its own image has its registration. While it cannot write it asks to be fenced again, so
that others lead, where there are others. A controlled shutdown is asked for with heartbeats
too: the controller gives what it led to others, and only then lets it go. That it is cordoned, by its configuration, is
told with them as well.

A broker that is cut off from the controller is not told that others lead by now what it led. Its clients need not
notice either: it goes on to answer them, with nothing new, and some ask it alone who leads. So it sends them away, to
look around: once its session must be over, and then more and more seldom, for it may be the controllers that are gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from penstock.base.configs.define import ResourceType
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Clock, Disk
from penstock.broker.config import BrokerConfig, Listener
from penstock.broker.controller_link import ControllerLink
from penstock.broker.journal import Journal
from penstock.broker.quorum import Quorum
from penstock.broker.registrations import broker_registration, controller_registration
from penstock.core.controller import cordons
from penstock.core.log.checkpoints import CLEAN_SHUTDOWN, decode_clean_shutdown
from penstock.core.metadata.delta import Delta
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import Image
from penstock.protocol.generated.broker_heartbeat_request import BrokerHeartbeatRequest
from penstock.protocol.generated.broker_heartbeat_response import BrokerHeartbeatResponse
from penstock.protocol.generated.broker_registration_request import BrokerRegistrationRequest

log = Journal(__name__)

_CHANNEL = "heartbeats"
"""Heartbeats wait behind nothing else: a broker that is busy is alive."""
_FINAL = (ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.INVALID_REGISTRATION)
"""refusals that asking again does not change"""
_UNKNOWN_TO_IT = (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED)
_AGAIN_MS = 100
_LOOK_MS = 100
"""so often it is looked whether the connection to the controller is still there"""
_LEAVING_EVERY_MS = 50
_LEAVE_DOUBT_MS = 150
"""after so long without an answer it asks whether anybody is left to give one"""
_LEAVE_WITHOUT_ANSWER_MS = 2_000
"""for so long a broker that stops waits for a controller to answer: one may be being elected, or none be left"""
_LEAVE_MS = 60_000
_TAKEOVER_MS = 500
"""after the end of its session others lead what a broker led"""
_LOOK_AROUND_MS = 1_000
"""before clients are sent away for the second time; it doubles"""
_LOOK_AROUND_MAX_MS = 600_000


def last_clean_epoch(disk: Disk) -> int:
    """The broker epoch with which the node stopped cleanly; -1 where it did not. To be read before logs are opened."""
    try:
        return decode_clean_shutdown(disk.read(CLEAN_SHUTDOWN))
    except FileNotFoundError:
        return -1


class Lifecycle:
    """Invariant: `broker_epoch` is the one of the last registration that was accepted."""

    def __init__(
        self,
        config: BrokerConfig,
        quorum: Quorum,
        link: ControllerLink,
        clock: Clock,
        unfit: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`unfit`: why this broker cannot write now; None where it can."""
        self.broker_epoch = -1
        """Known once the broker is registered."""
        self.is_fenced = True
        self._config = config
        self._node = Node(config.node_id, config.values)
        self._quorum = quorum
        self._link = link
        self._clock = clock
        self._unfit = unfit
        self._wants_aside = False
        """what the last heartbeat said: that others should lead, for this broker cannot write"""
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._unfenced: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._released: asyncio.Future[None] | None = None
        """done when the controller lets this broker go; there once it wants to"""
        self._answered_ms = 0
        self.on_silence: Callable[[], None] = lambda: None
        """called where the controller has not been heard for longer than a session, and there are other brokers"""
        self._silence: asyncio.TimerHandle | None = None
        self._registration: BrokerRegistrationRequest
        quorum.subscribe(self._follow)

    async def join(self, advertised: Sequence[Listener], incarnation: bytes, previous_epoch: int) -> None:
        """Until this broker may lead. `previous_epoch`: with which it stopped cleanly the last time; -1: it did not."""
        timeout_ms = self._config.number("initial.broker.registration.timeout.ms")
        await self.announce_controller(incarnation)
        self._registration = broker_registration(self._config, self._quorum, incarnation, advertised)
        self._registration.previous_broker_epoch = previous_epoch
        await self._register(timeout_ms)
        self._task = asyncio.get_running_loop().create_task(self._beat())
        await asyncio.shield(self._unfenced)

    async def announce_controller(self, incarnation: bytes) -> None:
        """Tell the cluster of this node's controller, where it has one."""
        if self._config.is_controller:
            timeout_ms = self._config.number("initial.broker.registration.timeout.ms")
            await self._link.ask(controller_registration(self._config, self._quorum, incarnation), timeout_ms)

    async def leave(self) -> None:
        """Until the controller has given to others what this broker led, or there is no controller to ask."""
        if self._task is None:
            return
        self._released = asyncio.get_running_loop().create_future()
        self._answered_ms = began_ms = self._clock.monotonic_ms()
        self._wake.set()
        while not self._released.done():
            await asyncio.wait({self._released}, timeout=_LEAVING_EVERY_MS / 1000)
            now_ms = self._clock.monotonic_ms()
            if self._quorum.is_cut_off:
                log.info("too few voters are left to let the broker go: it stops", broker=self._config.node_id)
                break
            if now_ms - self._answered_ms > _LEAVE_DOUBT_MS:
                self._quorum.ask_around()
            if now_ms - self._answered_ms > _LEAVE_WITHOUT_ANSWER_MS or now_ms - began_ms > _LEAVE_MS:
                log.warning("the controller could not be told that the broker stops", broker=self._config.node_id)
                break

    async def close(self) -> None:
        """No more heartbeats."""
        if self._silence is not None:
            self._silence.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _register(self, timeout_ms: int) -> None:
        end_ms = self._clock.monotonic_ms() + timeout_ms
        while True:
            left_ms = max(1, end_ms - self._clock.monotonic_ms())
            answer = await self._link.ask(self._registration, left_ms)
            if not answer.error_code:
                self.broker_epoch = answer.broker_epoch
                return
            code = ErrorCode(answer.error_code)
            if code in _FINAL or left_ms <= _AGAIN_MS:
                raise KafkaError(code, f"broker {self._config.node_id} could not register itself: {code.name}")
            await asyncio.sleep(_AGAIN_MS / 1000)

    async def _beat(self) -> None:
        while True:
            self._wake.clear()
            try:
                wait_ms = await self._heartbeat()
            except KafkaError as error:
                log.warning("a heartbeat was not answered", fault=str(error))
                wait_ms = _AGAIN_MS
            except Exception:  # a broker that ends its heartbeats is fenced for good
                log.exception("a heartbeat failed")
                wait_ms = _AGAIN_MS
            await self._sleep(wait_ms)

    async def _sleep(self, wait_ms: int) -> None:
        """Until the next heartbeat is due, or something has happened that the controller must hear of at once: that
        its connection is lost, that another is active, which does not know this broker to be alive, or that this
        broker cannot write any more, or can again."""
        until_ms = self._clock.monotonic_ms() + wait_ms
        while (left_ms := until_ms - self._clock.monotonic_ms()) > 0 and not self._wake.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left_ms, _LOOK_MS) / 1000):
                    await self._wake.wait()
            if not self._link.is_open(_CHANNEL) or self._wants_aside != self._should_step_aside():
                return

    def _should_step_aside(self) -> bool:
        """Only where there are others: the last broker goes on, for what it has can still be read."""
        if self._unfit() is None or self._released is not None:
            return False
        return self._has_others()

    def _has_others(self) -> bool:
        return any(one.active and one.id != self._config.node_id for one in self._quorum.image.brokers.values())

    async def _heartbeat(self) -> int:
        """One heartbeat; how long until the next."""
        leaving, interval_ms = self._released is not None, self._config.number("broker.heartbeat.interval.ms")
        offset = self._quorum.image.offset
        self._wants_aside = self._should_step_aside()
        request = BrokerHeartbeatRequest(
            broker_id=self._config.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=offset,
            want_fence=offset < self.broker_epoch or self._wants_aside,
            want_shut_down=leaving,
            cordoned_log_dirs=self._untold_cordon(),
        )
        answer: BrokerHeartbeatResponse = await self._link.ask(request, interval_ms, channel=_CHANNEL)
        self._heard()
        if answer.error_code:
            return await self._refused(ErrorCode(answer.error_code))
        self._take(answer)
        return _LEAVING_EVERY_MS if leaving else interval_ms

    def _untold_cordon(self) -> list[bytes] | None:
        """What the controller has to hear of this broker's directory; not before the image has all that was set."""
        image = self._quorum.image
        own = image.brokers.get(self._config.node_id)
        if own is None or own.epoch != self.broker_epoch:
            return None
        cordoned = cordons.cordons_path(image, self._node, self._config.log_dir)
        return cordons.untold(image, own, [self._quorum.identity.directory_id] if cordoned else [])

    def _heard(self) -> None:
        self._answered_ms = self._clock.monotonic_ms()
        if self._silence is not None:
            self._silence.cancel()
        after_ms = self._config.number("broker.session.timeout.ms") + _TAKEOVER_MS
        self._silence = asyncio.get_running_loop().call_later(after_ms / 1000, self._unheard, _LOOK_AROUND_MS)

    def _unheard(self, again_ms: int) -> None:
        if self._has_others():
            log.warning("no controller is heard: clients are sent to look around", broker=self._config.node_id)
            self.on_silence()
        again = min(2 * again_ms, _LOOK_AROUND_MAX_MS)
        self._silence = asyncio.get_running_loop().call_later(again_ms / 1000, self._unheard, again)

    def _take(self, answer: BrokerHeartbeatResponse) -> None:
        if answer.is_fenced and not self.is_fenced and self._released is None:
            unfit = self._unfit() if self._wants_aside else None
            reason = "its heartbeats did not reach the controller" if unfit is None else unfit
            log.warning("this broker was fenced", broker=self._config.node_id, reason=reason)
        self.is_fenced = answer.is_fenced
        if not self.is_fenced and not self._unfenced.done():
            self._unfenced.set_result(None)
        if answer.should_shut_down and self._released is not None and not self._released.done():
            self._released.set_result(None)

    async def _refused(self, code: ErrorCode) -> int:
        """The controller does not know this incarnation: the broker was unregistered, or another has its id."""
        log.warning("a heartbeat was refused", broker=self._config.node_id, error=code.name)
        if code in _UNKNOWN_TO_IT and self._released is None:
            self._registration.previous_broker_epoch = self.broker_epoch
            self.is_fenced = True
            await self._register(self._config.number("broker.session.timeout.ms"))
            return 0
        return _AGAIN_MS

    def _follow(self, delta: Delta, image: Image) -> None:
        """Its own registration is in the image: it is ready. Another broker shuts down: it has to wait until every
        broker has told that it knows. Its own configuration has changed: it may be cordoned, or not any more."""
        ready = self.is_fenced and 0 <= self.broker_epoch <= image.offset
        leaving = [one for one in delta.changed_brokers if one in image.brokers]
        if (int(ResourceType.BROKER), str(self._config.node_id)) in delta.changed_configs:
            strange = cordons.strange_paths(image, self._node, self._config.log_dir)
            if strange:
                log.warning("cordoned.log.dirs names what is not here", paths=strange, here=self._config.log_dir)
            self._wake.set()
        if ready or any(image.brokers[one].in_controlled_shutdown for one in leaving if one != self._config.node_id):
            self._wake.set()
