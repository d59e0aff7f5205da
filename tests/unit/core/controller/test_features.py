"""UpdateFeatures: which levels can be reached, and what else comes with them."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode
from penstock.core.controller.features import decide_update_features
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import ALL_BROKERS
from penstock.protocol.generated.config_record import ConfigRecord
from penstock.protocol.generated.feature_level_record import FeatureLevelRecord
from penstock.protocol.generated.register_broker_record import BrokerFeature, RegisterBrokerRecord
from penstock.protocol.generated.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from tests.unit.core.controller.moves import ELR, NODE, cluster, orders, partition, replayed

SUPPORTS = [("metadata.version", 7, 30), (ELR, 0, 1)]


def registered(image, features=SUPPORTS):
    """Every broker tells what it supports."""
    ranges = [BrokerFeature(name=n, min_supported_version=a, max_supported_version=b) for n, a, b in features]
    return replayed(
        image,
        [
            RegisterBrokerRecord(broker_id=one.id, broker_epoch=one.epoch, fenced=False, features=ranges)
            for one in image.brokers.values()
        ],
    )


def update(feature: str, level: int, kind: int = 1, **more: bool) -> UpdateFeaturesRequest:
    key = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
    return UpdateFeaturesRequest(feature_updates=[key], **more)


def test_a_feature_goes_up_by_a_record():
    image = registered(cluster(elr=False, level=25))
    result = decide_update_features(image, NODE, update("metadata.version", 30), 1)
    assert result.records == [FeatureLevelRecord(name="metadata.version", feature_level=30)]
    assert result.response.results[0].error_code == 0
    assert decide_update_features(image, NODE, update("metadata.version", 30, validate_only=True), 1).records == []


@pytest.mark.parametrize(
    ("feature", "level", "kind"),
    [
        ("metadata.version", 31, 1),
        ("metadata.version", 29, 1),
        ("metadata.version", 29, 2),
        ("nope", 1, 1),
        (ELR, 2, 1),
        (ELR, 0, 1),
        ("kraft.version", 0, 2),
    ],
)
def test_a_level_that_cannot_be_reached_is_refused(feature, level, kind):
    image = registered(cluster())
    old = decide_update_features(image, NODE, update(feature, level, kind), 1)
    assert (old.response.results[0].error_code, old.records) == (ErrorCode.INVALID_UPDATE_VERSION, [])
    new = decide_update_features(image, NODE, update(feature, level, kind), 2)
    assert (new.response.error_code, new.response.results) == (ErrorCode.INVALID_UPDATE_VERSION, [])


def test_a_level_that_a_broker_does_not_support_is_refused():
    image = registered(cluster(elr=False, level=25), [("metadata.version", 7, 29)])
    result = decide_update_features(image, NODE, update("metadata.version", 30), 2)
    assert (result.response.error_code, result.records) == (ErrorCode.INVALID_UPDATE_VERSION, [])
    assert "broker 1" in result.response.error_message


def test_one_refused_update_refuses_all_of_the_request():
    image = registered(cluster(elr=False, level=25))
    request = update("metadata.version", 30)
    request.feature_updates += update("nope", 1).feature_updates
    assert decide_update_features(image, NODE, request, 2).records == []


def test_with_elr_the_minimum_is_the_same_on_every_broker():
    image = registered(cluster(elr=False))
    own = ConfigRecord(resource_type=4, resource_name="2", name="min.insync.replicas", value="3")
    image = replayed(image, [own])
    after = replayed(image, decide_update_features(image, NODE, update(ELR, 1), 2).records)
    assert after.eligible_leader_replicas_enabled
    assert after.configs == {ALL_BROKERS: {"min.insync.replicas": "2"}}


def test_elr_needs_a_metadata_log_that_can_name_them():
    image = registered(cluster(elr=False, level=22))
    refused = decide_update_features(image, Node(1, {}), update(ELR, 1), 2).response
    assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_without_elr_nobody_is_eligible():
    image = registered(cluster(partition([1, 2, 3], [1], eligible=[2])))
    after = replayed(image, decide_update_features(image, NODE, update(ELR, 0, kind=2), 2).records)
    assert not after.eligible_leader_replicas_enabled
    assert orders(after).eligible == ()


def test_elr_stays_while_a_partition_can_only_be_led_by_an_eligible_replica():
    image = registered(cluster(partition([1, 2, 3], [], eligible=[1], last_known_eligible=[1]), alive=()))
    refused = decide_update_features(image, NODE, update(ELR, 0, kind=2), 2)
    assert (refused.response.error_code, refused.records) == (ErrorCode.INVALID_UPDATE_VERSION, [])
