"""A member of a share group that reports when it is told to: by hand, one request after the other."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

from penstock.base.errors import ErrorCode
from penstock.protocol.generated.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.generated.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from tests.bad_input.raw_client import RawClient

GROUP = 0
LIMIT_S = 40
_AGAIN = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class ShareMember:
    def __init__(self, bootstrap: str, group_id: str, topics: list[str]) -> None:
        self.bootstrap = bootstrap
        self.group_id = group_id
        self.topics = topics
        self.member_id = uuid4().hex
        self.epoch = 0
        self.assigned: dict[bytes, list[int]] = {}
        self._client: RawClient | None = None

    def report(self, *, leaves: bool = False) -> Any:
        """One heartbeat, answered by whoever coordinates the group now."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            answer = self._report(-1 if leaves else self.epoch)
            if answer is not None and answer.error_code not in _AGAIN:
                assert answer.error_code == 0, answer
                break
            assert time.monotonic() < deadline, f"no coordinator: {answer}"
            self._drop()
            time.sleep(0.1)
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.assigned = {one.topic_id: one.partitions for one in answer.assignment.topic_partitions}
        return answer

    def report_until_assigned(self, partitions: int) -> None:
        """More often than it has to, for a test's sake."""
        deadline = time.monotonic() + LIMIT_S
        while sum(map(len, self.assigned.values())) != partitions:
            assert time.monotonic() < deadline, f"{self.assigned} in epoch {self.epoch}"
            self.report()
            time.sleep(0.2)

    def leave(self) -> None:
        self.report(leaves=True)
        self._drop()

    def _report(self, epoch: int) -> Any:
        request = ShareGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            rack_id=None,
            subscribed_topic_names=None if epoch else self.topics,
        )
        try:
            if self._client is None:
                self._client = RawClient(coordinator_of(self.bootstrap, self.group_id))
            return self._client.call(request, 1)
        except Exception:
            self._drop()
            return None

    def _drop(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


def coordinator_of(bootstrap: str, key: str, kind: int = GROUP) -> tuple[str, int]:
    """Where it is, once it is somewhere."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        for address in bootstrap.split(","):
            host, _, port = address.rpartition(":")
            try:
                with RawClient((host, int(port))) as client:
                    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
                    [found] = client.call(request, 6).coordinators
            except Exception:
                continue
            if not found.error_code:
                return found.host, found.port
        time.sleep(0.1)
    raise AssertionError(f"nobody coordinates {key}")
