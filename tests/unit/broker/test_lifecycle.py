"""A broker's life: it registers until it is let in, is unfenced when it is ready, and leaves when it is let go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.base.configs.define import ResourceType
from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.config import BrokerConfig, ConfigFault, Listener
from penstock.broker.controller_link import ControllerLink
from penstock.broker.embedded import single_node
from penstock.broker.lifecycle import Lifecycle, last_clean_epoch
from penstock.broker.quorum import Quorum
from penstock.broker.system import SystemClock
from penstock.core.log.checkpoints import CLEAN_SHUTDOWN, encode_clean_shutdown
from penstock.core.metadata.delta import Delta
from penstock.core.metadata.image import Image
from penstock.protocol.generated.broker_heartbeat_request import BrokerHeartbeatRequest
from penstock.protocol.generated.broker_heartbeat_response import BrokerHeartbeatResponse
from penstock.protocol.generated.broker_registration_change_record import BrokerRegistrationChangeRecord
from penstock.protocol.generated.broker_registration_request import BrokerRegistrationRequest
from penstock.protocol.generated.broker_registration_response import BrokerRegistrationResponse
from penstock.protocol.generated.config_record import ConfigRecord
from penstock.protocol.generated.controller_registration_response import ControllerRegistrationResponse
from penstock.protocol.message import Message
from penstock.sim.disk import SimDisk
from tests.unit.core.controller.moves import cluster

FENCED = BrokerHeartbeatResponse(is_fenced=True)
UNFENCED = BrokerHeartbeatResponse(is_fenced=False)
LET_GO = BrokerHeartbeatResponse(is_fenced=True, should_shut_down=True)


class Scene:
    """A controller that answers as a test wants, and keeps what it was asked."""

    def __init__(self) -> None:
        self.registrations: list[BrokerRegistrationRequest] = []
        self.heartbeats: list[BrokerHeartbeatRequest] = []
        self.registered: list[Message | Exception] = [BrokerRegistrationResponse(broker_epoch=40)]
        self.beaten: list[Message | Exception] = [UNFENCED]
        self.is_connected = True
        self.unfit: str | None = None
        self.is_alone = False
        self.quorum = SimpleNamespace(
            image=Image(offset=40),
            cluster_id="c",
            identity=SimpleNamespace(directory_id=b"d" * 16),
            controller_endpoints=(),
            subscribe=self._subscribe,
            is_cut_off=False,
            ask_around=self._ask_around,
        )
        self._follower: Callable[[Delta, Image], None]
        self.life: Lifecycle

    def _ask_around(self) -> None:
        self.quorum.is_cut_off = self.is_alone

    def _subscribe(self, follower: Callable[[Delta, Image], None]) -> None:
        self._follower = follower

    def reach(self, offset: int) -> None:
        """The node's own image moves on."""
        before = self.quorum.image
        self.quorum.image = Image(offset=offset)
        self._follower(Delta(before), self.quorum.image)

    def follow(self, records: list[Message]) -> None:
        """The node's own image has these now."""
        delta = Delta(self.quorum.image)
        for record in records:
            delta.replay(record)
        self.quorum.image = replace(delta.apply(), offset=self.quorum.image.offset + len(records))
        self._follower(delta, self.quorum.image)

    async def ask(self, message: Message, _timeout_ms: int, *, channel: str = "") -> Message:
        await asyncio.sleep(0)
        if isinstance(message, BrokerRegistrationRequest):
            self.registrations.append(message)
            return self._next(self.registered)
        if isinstance(message, BrokerHeartbeatRequest):
            assert channel, "heartbeats wait behind nothing else"
            self.heartbeats.append(message)
            return self._next(self.beaten)
        return ControllerRegistrationResponse()

    def is_open(self, _channel: str) -> bool:
        return self.is_connected

    @staticmethod
    def _next(answers: list[Message | Exception]) -> Message:
        """The last one is given again and again."""
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def join(self, previous_epoch: int = 7) -> None:
        await self.life.join([Listener("PLAINTEXT", "h", 9092)], b"i" * 16, previous_epoch)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                await asyncio.sleep(0.001)


def story(told: Callable[[Scene], Coroutine[Any, Any, None]], settings: dict[str, str] | None = None) -> None:
    async def run() -> None:
        scene = Scene()
        config = BrokerConfig({**single_node("/nowhere"), **(settings or {})})
        link, quorum = cast(ControllerLink, scene), cast(Quorum, scene.quorum)
        scene.life = Lifecycle(config, quorum, link, SystemClock(), lambda: scene.unfit)
        try:
            await told(scene)
        finally:
            await scene.life.close()

    asyncio.run(run())


def test_a_broker_tells_with_which_epoch_it_stopped_and_learns_its_new_one():
    async def told(scene: Scene) -> None:
        await scene.join(previous_epoch=7)
        (request,) = scene.registrations
        assert (request.previous_broker_epoch, request.log_dirs) == (7, [b"d" * 16])
        assert (scene.life.broker_epoch, scene.life.is_fenced) == (40, False)

    story(told)


def test_registration_is_tried_until_the_other_session_is_over():
    async def told(scene: Scene) -> None:
        duplicate = BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION)
        scene.registered.insert(0, duplicate)
        await scene.join()
        assert len(scene.registrations) == 2

    story(told)


def test_a_broker_that_does_not_belong_does_not_start():
    async def told(scene: Scene) -> None:
        scene.registered = [BrokerRegistrationResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)]
        with pytest.raises(KafkaError, match="could not register itself"):
            await scene.join()

    story(told)


def test_it_wants_to_be_fenced_until_its_image_has_its_registration():
    async def told(scene: Scene) -> None:
        scene.quorum.image = Image(offset=39)
        scene.beaten = [FENCED, UNFENCED]
        joining = asyncio.create_task(scene.join())
        await scene.until(lambda: bool(scene.heartbeats))
        assert (scene.heartbeats[0].want_fence, joining.done()) == (True, False)
        scene.reach(40)
        await joining
        assert (scene.heartbeats[1].want_fence, scene.heartbeats[1].current_metadata_offset) == (False, 40)

    story(told)


def test_a_broker_that_cannot_write_asks_to_be_fenced_and_not_any_more_once_it_can():
    async def told(scene: Scene) -> None:
        scene.quorum.image = replace(cluster(alive=(1, 2)), offset=40)
        await scene.join()
        scene.unfit = "the disk is full"
        await scene.until(lambda: scene.heartbeats[-1].want_fence)
        scene.unfit = None
        await scene.until(lambda: not scene.heartbeats[-1].want_fence)

    story(told)


def test_the_last_broker_does_not_ask_to_be_fenced_though_it_cannot_write():
    async def told(scene: Scene) -> None:
        scene.quorum.image = replace(cluster(alive=(1,)), offset=40)
        scene.unfit = "the disk is full"
        await scene.join()
        scene.is_connected = False  # so that there are more of them
        await scene.until(lambda: len(scene.heartbeats) > 1)
        assert [one for one in scene.heartbeats if one.want_fence] == []

    story(told)


def test_a_broker_that_cannot_write_leaves_in_order_all_the_same():
    async def told(scene: Scene) -> None:
        scene.quorum.image = replace(cluster(alive=(1, 2)), offset=40)
        scene.unfit = "the disk is full"
        await scene.join()
        scene.beaten = [UNFENCED, LET_GO]
        asked = len(scene.heartbeats)
        await scene.life.leave()
        assert not any(one.want_fence for one in scene.heartbeats[asked:])

    story(told)


def test_a_lost_connection_is_made_again_at_once():
    async def told(scene: Scene) -> None:
        await scene.join()
        scene.is_connected = False
        await scene.until(lambda: len(scene.heartbeats) > 1)

    story(told)


def test_heartbeats_go_on_after_a_fault_of_our_own(caplog):
    async def told(scene: Scene) -> None:
        scene.beaten = [AssertionError("a fault of our own"), UNFENCED]
        async with asyncio.timeout(10):
            await scene.join()
        assert len(scene.heartbeats) == 2

    story(told)
    assert [repr(one.exc_info[1]) for one in caplog.records if one.exc_info] == ["AssertionError('a fault of our own')"]


@pytest.mark.parametrize("code", [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED])
def test_a_broker_that_the_controller_does_not_know_registers_again(code):
    async def told(scene: Scene) -> None:
        scene.beaten = [UNFENCED, BrokerHeartbeatResponse(error_code=code), UNFENCED]
        scene.registered.append(BrokerRegistrationResponse(broker_epoch=50))
        await scene.join()
        scene.is_connected = False
        await scene.until(lambda: scene.life.broker_epoch == 50)
        assert scene.registrations[1].previous_broker_epoch == 40

    story(told)


def test_it_leaves_when_the_controller_lets_it_go():
    async def told(scene: Scene) -> None:
        await scene.join()
        scene.beaten = [UNFENCED, UNFENCED, LET_GO]
        asked = len(scene.heartbeats)
        await scene.life.leave()
        wants = [one.want_shut_down for one in scene.heartbeats[asked:]]
        assert wants[:3] == [True, True, True]

    story(told)


def test_it_does_not_wait_for_a_controller_where_there_can_be_none():
    async def told(scene: Scene) -> None:
        await scene.join()
        scene.beaten = [KafkaError(ErrorCode.REQUEST_TIMED_OUT)]
        scene.is_alone = True
        async with asyncio.timeout(1):
            await scene.life.leave()

    story(told)


def test_a_broker_that_never_joined_just_stops():
    async def told(scene: Scene) -> None:
        await scene.life.leave()
        assert scene.heartbeats == []

    story(told)


def test_the_epoch_of_a_clean_stop_is_read_from_its_marker():
    disk = SimDisk(Random(1))
    assert last_clean_epoch(disk) == -1
    disk.replace(CLEAN_SHUTDOWN, encode_clean_shutdown(17))
    assert last_clean_epoch(disk) == 17


SILENT = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no active controller answered in time")
SHORT_SESSION = {"broker.session.timeout.ms": "500", "broker.heartbeat.interval.ms": "10"}


def test_clients_are_sent_to_look_around_when_the_controller_is_silent_for_longer_than_a_session():
    async def told(scene: Scene) -> None:
        sent_away: list[int] = []
        scene.life.on_silence = lambda: sent_away.append(len(scene.heartbeats))
        scene.quorum.image = replace(cluster(alive=(1, 2)), offset=40)
        await scene.join()
        await scene.until(lambda: len(scene.heartbeats) > 10)
        assert sent_away == [], "while it is heard nobody is"
        scene.beaten = [SILENT]
        await scene.until(lambda: len(sent_away) == 2)

    story(told, SHORT_SESSION)


def test_the_last_broker_keeps_its_clients_though_no_controller_is_heard():
    async def told(scene: Scene) -> None:
        sent_away: list[None] = []
        scene.life.on_silence = lambda: sent_away.append(None)
        scene.quorum.image = replace(cluster(alive=(1,)), offset=40)
        await scene.join()
        scene.beaten = [SILENT]
        asked = len(scene.heartbeats)
        await scene.until(lambda: len(scene.heartbeats) > asked + 7)
        assert sent_away == []

    story(told, SHORT_SESSION)


def cordon(value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=ResourceType.BROKER, resource_name="1", name="cordoned.log.dirs", value=value)


def test_a_cordon_is_told_at_once_and_until_the_image_has_it():
    async def told(scene: Scene) -> None:
        scene.registered = [BrokerRegistrationResponse(broker_epoch=11)]
        scene.beaten = [BrokerHeartbeatResponse(is_fenced=False)]
        scene.quorum.image = replace(cluster(alive=(1, 2)), offset=40)
        await scene.join()
        assert scene.heartbeats[-1].cordoned_log_dirs is None
        scene.follow([cordon("*")])
        await scene.until(lambda: scene.heartbeats[-1].cordoned_log_dirs == [b"d" * 16])
        known = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=11, cordoned_log_dirs=[b"d" * 16])
        scene.follow([known])
        scene.is_connected = False  # so that there are more of them
        await scene.until(lambda: scene.heartbeats[-1].cordoned_log_dirs is None)
        scene.follow([cordon("")])
        await scene.until(lambda: scene.heartbeats[-1].cordoned_log_dirs == [])

    story(told, {"broker.heartbeat.interval.ms": "60000"})


def test_a_cordon_of_the_properties_file_is_told_from_the_first_heartbeat_on():
    async def told(scene: Scene) -> None:
        scene.registered = [BrokerRegistrationResponse(broker_epoch=11)]
        scene.quorum.image = replace(cluster(alive=(1, 2)), offset=40)
        await scene.join()
        assert scene.heartbeats[0].cordoned_log_dirs == [b"d" * 16]

    story(told, {"cordoned.log.dirs": "*"})


def test_a_broker_that_is_to_cordon_what_it_has_not_does_not_start():
    with pytest.raises(ConfigFault, match="/elsewhere is not the directory of this broker, /nowhere"):
        BrokerConfig({**single_node("/nowhere"), "cordoned.log.dirs": "/elsewhere"})
