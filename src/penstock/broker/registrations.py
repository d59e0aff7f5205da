"""What a node tells the cluster of itself: BrokerRegistration and ControllerRegistration."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.broker.config import BrokerConfig, Listener
from penstock.broker.quorum import Quorum
from penstock.core.controller.features import SUPPORTED
from penstock.core.metadata.image import Image
from penstock.protocol.generated import broker_registration_request as of_broker
from penstock.protocol.generated import controller_registration_request as of_controller


def broker_registration(
    config: BrokerConfig, quorum: Quorum, incarnation: bytes, advertised: Sequence[Listener]
) -> of_broker.BrokerRegistrationRequest:
    return of_broker.BrokerRegistrationRequest(
        broker_id=config.node_id,
        cluster_id=quorum.cluster_id,
        incarnation_id=incarnation,
        listeners=[of_broker.Listener(name=one.name, host=one.host, port=one.port) for one in advertised],
        features=[
            of_broker.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in _features(quorum.image).items()
        ],
        rack=config.text("broker.rack") or None,
        log_dirs=[quorum.identity.directory_id],
    )


def controller_registration(
    config: BrokerConfig, quorum: Quorum, incarnation: bytes
) -> of_controller.ControllerRegistrationRequest:
    return of_controller.ControllerRegistrationRequest(
        controller_id=config.node_id,
        incarnation_id=incarnation,
        listeners=[
            of_controller.Listener(name=one.name, host=one.host, port=one.port) for one in quorum.controller_endpoints
        ],
        features=[
            of_controller.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in _features(quorum.image).items()
        ],
    )


def _features(image: Image) -> dict[str, tuple[int, int]]:
    """What we support, and what an adopted cluster has finalized: its records are understood at those levels."""
    supported = {one.name: (one.low, one.high) for one in SUPPORTED}
    ranges = {name: (0, level) for name, level in image.features.items()}
    return dict(sorted((ranges | supported).items()))
