"""Brokers that keep what they have and get nothing new, as before they leave the cluster (KIP-1066).

A broker tells in its heartbeats which of its directories its configuration `cordoned.log.dirs` names. Where that is all
of them, nobody puts a replica there that it has not got: no new topic or partition, no reassignment, no balancer.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.base.configs.broker_logs import EVERY_DIRECTORY
from penstock.core.metadata.effective import Node, broker_typed
from penstock.core.metadata.image import Broker, Image
from penstock.core.metadata.versions import CORDONED_DIRECTORIES_FROM
from penstock.protocol.generated.broker_registration_change_record import BrokerRegistrationChangeRecord
from penstock.protocol.message import Message


def are_known(image: Image) -> bool:
    """Whether the cluster's metadata can say it."""
    return image.metadata_version >= CORDONED_DIRECTORIES_FROM


def cordons_path(image: Image, node: Node, path: str) -> bool:
    """Whether the broker's configuration names the directory, or all there are."""
    named = _named(image, node)
    return EVERY_DIRECTORY in named or path in named


def strange_paths(image: Image, node: Node, path: str) -> list[str]:
    """What it names besides, which is not the broker's."""
    return [one for one in _named(image, node) if one not in (EVERY_DIRECTORY, path)]


def _named(image: Image, node: Node) -> list[str]:
    named = broker_typed(image, node, "cordoned.log.dirs")
    assert isinstance(named, list)
    return named


def untold(image: Image, broker: Broker, cordoned: list[bytes]) -> list[bytes] | None:
    """What a heartbeat has to tell: all directories that are cordoned now. None where the image has that already, or
    cannot have it."""
    return cordoned if are_known(image) and cordoned != list(broker.cordoned_log_dirs or ()) else None


def is_news(image: Image, broker: Broker, cordoned: Iterable[bytes] | None) -> bool:
    return cordoned is not None and untold(image, broker, _own(broker, cordoned)) is not None


def decide_cordon(image: Image, broker: Broker, cordoned: Iterable[bytes] | None) -> list[Message]:
    """The record of what a heartbeat tells; None is no news."""
    if cordoned is None or not is_news(image, broker, cordoned):
        return []
    return [
        BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=_own(broker, cordoned)
        )
    ]


def _own(broker: Broker, directories: Iterable[bytes]) -> list[bytes]:
    return [one for one in directories if one in broker.log_dirs]
