"""Which levels of which features this release can run at, and how the cluster's levels change: UpdateFeatures."""

from __future__ import annotations

from penstock.base.configs.define import ResourceType
from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.controller.result import Result
from penstock.core.metadata.effective import Node, broker_value
from penstock.core.metadata.image import (
    ALL_BROKERS,
    ELIGIBLE_LEADER_REPLICAS,
    GROUP_VERSION,
    METADATA_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
    FeatureRange,
    Image,
)
from penstock.core.metadata.versions import METADATA_VERSION_LATEST, METADATA_VERSION_MIN
from penstock.protocol.generated.clear_elr_record import ClearElrRecord
from penstock.protocol.generated.config_record import ConfigRecord
from penstock.protocol.generated.feature_level_record import FeatureLevelRecord
from penstock.protocol.generated.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from penstock.protocol.generated.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse
from penstock.protocol.message import Message

KRAFT_VERSION = "kraft.version"
SUPPORTED = (
    FeatureRange(ELIGIBLE_LEADER_REPLICAS, 0, 1),
    FeatureRange(GROUP_VERSION, 0, 1),
    FeatureRange(KRAFT_VERSION, 0, 1),
    FeatureRange(METADATA_VERSION, METADATA_VERSION_MIN, METADATA_VERSION_LATEST),
    FeatureRange(SHARE_VERSION, 0, 1),
    FeatureRange(STREAMS_VERSION, 0, 1),
    FeatureRange(TRANSACTION_VERSION, 0, 2),
)
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
_ELIGIBLE_REPLICAS_FROM = 23
"""4.0-IV1: the metadata log can name eligible leader replicas"""
_MIN_ISR = "min.insync.replicas"


def decide_update_features(
    image: Image, node: Node, request: UpdateFeaturesRequest, version: int, *, kraft_version: int = 1
) -> Result[UpdateFeaturesResponse]:
    """All updates of a request hold or none does. From version 2 on, the first fault is the answer's own.

    `kraft_version`: at which the quorum runs; the metadata log itself carries it.
    """
    records: list[Message] = []
    results = []
    first_fault: KafkaError | None = None
    for update in request.feature_updates:
        result = UpdatableFeatureResult(feature=update.feature, error_message=None)
        results.append(result)
        try:
            records += _update(image, node, update, kraft_version)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
            first_fault = first_fault or error
    response = UpdateFeaturesResponse(error_message=None, results=results if version < 2 else [])
    if version >= 2 and first_fault is not None:
        response.error_code, response.error_message = first_fault.code, first_fault.message
    return Result(response, [] if first_fault is not None or request.validate_only else records)


def _update(image: Image, node: Node, update: FeatureUpdateKey, kraft_version: int) -> list[Message]:
    name, level = update.feature, update.max_version_level
    _check_supported(image, name, level)
    now = kraft_version if name == KRAFT_VERSION else image.features.get(name, 0)
    down = update.upgrade_type in (SAFE_DOWNGRADE, UNSAFE_DOWNGRADE) or update.allow_downgrade
    if level < now and not down:
        _refuse(f"{name}: going down from {now} to {level} needs the upgrade type of a downgrade")
    if level > now and update.upgrade_type != UPGRADE:
        _refuse(f"{name}: going up from {now} to {level} is no downgrade")
    if name == METADATA_VERSION and level < now:
        _refuse(f"{name}: the metadata in the log may need level {now}; going down is not supported")
    if name == KRAFT_VERSION and level != now:
        _refuse(f"{name}: a quorum at level {now} cannot go to {level}")
    if level == now:
        return []
    record = FeatureLevelRecord(name=name, feature_level=level)
    if name != ELIGIBLE_LEADER_REPLICAS:
        return [record]
    return [record, *(eligible_leaders_safely(image, node) if level else _eligible_leaders_off(image))]


def _check_supported(image: Image, name: str, level: int) -> None:
    """By this release, and by every node that is registered."""
    known = next((one for one in SUPPORTED if one.name == name), None)
    if known is None:
        _refuse(f"{name}: this release has no such feature")
    assert known is not None
    if level != 0 and not known.low <= level <= known.high:
        _refuse(f"{name}: level {level} is outside of {known.low} to {known.high}, which this release supports")
    if name == ELIGIBLE_LEADER_REPLICAS and level and image.metadata_version < _ELIGIBLE_REPLICAS_FROM:
        _refuse(f"{name}: level {level} needs {METADATA_VERSION} {_ELIGIBLE_REPLICAS_FROM}")
    nodes = [("broker", one.id, one.features) for one in image.brokers.values()]
    nodes += [("controller", one.id, one.features) for one in image.controllers.values()]
    for kind, node_id, features in nodes:
        theirs = next((one for one in features if one.name == name), FeatureRange(name, 0, 0))
        if name != KRAFT_VERSION and level != 0 and not theirs.low <= level <= theirs.high:
            _refuse(f"{name}: {kind} {node_id} supports {theirs.low} to {theirs.high}, not {level}")


def eligible_leaders_safely(image: Image, node: Node) -> list[Message]:
    """Who is eligible depends on `min.insync.replicas`: it must not differ from broker to broker any more."""
    records: list[Message] = []
    if _MIN_ISR not in image.configs.get(ALL_BROKERS, {}):
        value = broker_value(image, node, _MIN_ISR)
        records.append(ConfigRecord(resource_type=ResourceType.BROKER, resource_name="", name=_MIN_ISR, value=value))
    for (kind, name), values in image.configs.items():
        if kind == ResourceType.BROKER and name and _MIN_ISR in values:
            records.append(ConfigRecord(resource_type=kind, resource_name=name, name=_MIN_ISR, value=None))
    return records


def _eligible_leaders_off(image: Image) -> list[Message]:
    if any(not one.isr for topic in image.topics.values() for one in topic.partitions.values()):
        _refuse(f"{ELIGIBLE_LEADER_REPLICAS}: a partition has no replica in sync, only eligible ones could lead it")
    return [ClearElrRecord(topic_name="")]


def _refuse(text: str) -> None:
    raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, text)
