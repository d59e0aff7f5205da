"""Which levels of which features this release can run at, and how the cluster's levels change: UpdateFeatures."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.controller.result import Result
from penstock.core.metadata.image import METADATA_VERSION, FeatureRange, Image
from penstock.core.metadata.versions import METADATA_VERSION_LATEST, METADATA_VERSION_MIN
from penstock.protocol.generated.feature_level_record import FeatureLevelRecord
from penstock.protocol.generated.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from penstock.protocol.generated.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse
from penstock.protocol.message import Message

KRAFT_VERSION = "kraft.version"
SUPPORTED = (
    FeatureRange(KRAFT_VERSION, 0, 1),
    FeatureRange(METADATA_VERSION, METADATA_VERSION_MIN, METADATA_VERSION_LATEST),
)
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def decide_update_features(
    image: Image, request: UpdateFeaturesRequest, version: int, supported: tuple[FeatureRange, ...] = SUPPORTED
) -> Result[UpdateFeaturesResponse]:
    """All updates of a request hold or none does. From version 2 on, the first fault is the answer's own."""
    ranges = {one.name: one for one in supported}
    records: list[Message] = []
    results = []
    first_fault: KafkaError | None = None
    for update in request.feature_updates:
        result = UpdatableFeatureResult(feature=update.feature, error_message=None)
        results.append(result)
        try:
            records += _update(image, update, ranges)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
            first_fault = first_fault or error
    response = UpdateFeaturesResponse(error_message=None, results=results if version < 2 else [])
    if version >= 2 and first_fault is not None:
        response.error_code, response.error_message = first_fault.code, first_fault.message
    return Result(response, [] if first_fault is not None or request.validate_only else records)


def _update(image: Image, update: FeatureUpdateKey, ranges: dict[str, FeatureRange]) -> list[Message]:
    name, level = update.feature, update.max_version_level
    known = ranges.get(name)
    if known is None:
        _refuse(f"{name}: this release has no such feature")
    assert known is not None
    if level != 0 and not known.low <= level <= known.high:
        _refuse(f"{name}: level {level} is outside of {known.low} to {known.high}, which this release supports")
    now = image.features.get(name, 0)
    down = update.upgrade_type in (SAFE_DOWNGRADE, UNSAFE_DOWNGRADE) or update.allow_downgrade
    if level < now and not down:
        _refuse(f"{name}: going down from {now} to {level} needs the upgrade type of a downgrade")
    if name == METADATA_VERSION and level < now:
        _refuse(f"{name}: the metadata in the log may need level {now}; going down is not supported")
    if name == KRAFT_VERSION and level != 1:
        _refuse(f"{name}: a quorum at level 1 cannot go back to {level}")
    if level == now or name == KRAFT_VERSION:
        return []
    return [FeatureLevelRecord(name=name, feature_level=level)]


def _refuse(text: str) -> None:
    raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, text)
