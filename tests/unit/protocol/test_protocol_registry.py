from __future__ import annotations

import subprocess
import sys

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.protocol import registry


def test_each_api_leads_to_its_classes() -> None:
    for key, api in registry.APIS.items():
        for cls in (registry.request_class(key), registry.response_class(key)):
            found = (cls.API_KEY, cls.MIN_VERSION, cls.MAX_VERSION, cls.FLEXIBLE_FROM)
            assert found == (key, api.min_version, api.max_version, api.flexible_from)
        assert registry.request_class(key).__name__ == f"{api.name}Request"


def test_the_apis_that_kafka_4_removed_are_not_here() -> None:
    assert not {4, 5, 6, 7} & set(registry.APIS)


def test_an_unfinished_version_is_known_as_such() -> None:
    unfinished = [api.name for api in registry.APIS.values() if api.latest_stable < api.max_version]
    assert unfinished == ["InitProducerId"]


def test_an_unknown_api_is_refused() -> None:
    with pytest.raises(KafkaError, match="no API with key 999") as refusal:
        registry.request_class(999)
    assert refusal.value.code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("types", "number", "name"),
    [
        (registry.METADATA_RECORDS, 2, "TopicRecord"),
        (registry.GROUP_KEYS, 1, "OffsetCommitKey"),
        (registry.GROUP_VALUES, 2, "GroupMetadataValue"),
        (registry.TRANSACTION_VALUES, 0, "TransactionLogValue"),
        (registry.SHARE_KEYS, 0, "ShareSnapshotKey"),
    ],
)
def test_each_record_type_leads_to_its_class(types: registry.RecordTypes, number: int, name: str) -> None:
    assert types[number].__name__ == name
    assert number == types[number].API_KEY


def test_no_message_is_loaded_before_it_is_used() -> None:
    code = (
        "import sys; from penstock.protocol import registry, frames, metadata_frames, hot_produce, hot_fetch;"
        "print([name for name in sys.modules if name.startswith('penstock.protocol.generated.')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "['penstock.protocol.generated.index']"
