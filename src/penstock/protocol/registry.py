"""Every API and record type by its number. Classes are imported on first use: a broker needs few of them to start."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from re import sub
from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.protocol.generated import index
from penstock.protocol.message import Message


class Api(NamedTuple):
    key: int
    name: str
    min_version: int
    max_version: int
    flexible_from: int
    listeners: tuple[str, ...]
    """who answers it: broker, controller"""
    latest_stable: int
    """the highest version that is finished; one above it may exist and change"""


APIS: dict[int, Api] = {
    key: Api(key, name, low, high, flexible, listeners, high - unstable)
    for key, name, low, high, flexible, listeners, unstable in index.APIS
}

_loaded: dict[str, type[Message]] = {}


def message_class(name: str) -> type[Message]:
    """A generated class by the name in its specification, `CreateTopicsRequest`."""
    found = _loaded.get(name)
    if found is None:
        module = import_module(f"penstock.protocol.generated.{module_name(name)}")
        found = _loaded[name] = getattr(module, name)
    return found


def request_class(api_key: int) -> type[Message]:
    return message_class(f"{_api(api_key).name}Request")


def response_class(api_key: int) -> type[Message]:
    return message_class(f"{_api(api_key).name}Response")


def _api(api_key: int) -> Api:
    api = APIS.get(api_key)
    if api is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"there is no API with key {api_key}")
    return api


def module_name(name: str) -> str:
    return sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


class RecordTypes:
    """The records of one log by their type number; a coordinator's have a key and a value of the same number."""

    def __init__(self, log: str, names: dict[int, str]) -> None:
        self.log = log
        self.names = names

    def __getitem__(self, type_id: int) -> type[Message]:
        name = self.names.get(type_id)
        if name is None:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{self.log} has no record type {type_id}")
        return message_class(name)

    def __contains__(self, type_id: int) -> bool:
        return type_id in self.names

    def __iter__(self) -> Iterator[int]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def _keys(names: dict[int, tuple[str, str]]) -> dict[int, str]:
    return {number: key for number, (key, _) in names.items()}


def _values(names: dict[int, tuple[str, str]]) -> dict[int, str]:
    return {number: value for number, (_, value) in names.items()}


METADATA_RECORDS = RecordTypes("the metadata log", index.METADATA_RECORDS)
REMOTE_LOG_RECORDS = RecordTypes("the remote log metadata", index.REMOTE_LOG_RECORDS)
GROUP_KEYS = RecordTypes("__consumer_offsets", _keys(index.GROUP_RECORDS))
GROUP_VALUES = RecordTypes("__consumer_offsets", _values(index.GROUP_RECORDS))
TRANSACTION_KEYS = RecordTypes("__transaction_state", _keys(index.TRANSACTION_RECORDS))
TRANSACTION_VALUES = RecordTypes("__transaction_state", _values(index.TRANSACTION_RECORDS))
SHARE_KEYS = RecordTypes("__share_group_state", _keys(index.SHARE_RECORDS))
SHARE_VALUES = RecordTypes("__share_group_state", _values(index.SHARE_RECORDS))
