"""What a change of configurations leads to: the new values of one resource, checked, as records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.base.configs.broker import BROKER_CONFIGS, without_listener
from penstock.base.configs.define import ConfigDef, ConfigType, Dynamic, ResourceType
from penstock.base.configs.group import GROUP_CONFIGS, check_group_configs
from penstock.base.configs.metrics import CLIENT_METRICS_CONFIGS
from penstock.base.configs.topic import TOPIC_CONFIGS, check_topic_configs
from penstock.base.configs.values import parse, split_list
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import topic_name_fault
from penstock.base.limits import CONFIG_VALUE_LENGTH_MAX
from penstock.core.controller.cordons import are_known
from penstock.core.metadata.effective import Node, broker_typed
from penstock.core.metadata.image import Image, Resource
from penstock.core.metadata.versions import CORDONED_DIRECTORIES_FROM
from penstock.protocol.generated.clear_elr_record import ClearElrRecord
from penstock.protocol.generated.config_record import ConfigRecord
from penstock.protocol.generated.partition_change_record import PartitionChangeRecord
from penstock.protocol.message import Message

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
MIN_ISR = "min.insync.replicas"
TABLES: dict[int, Mapping[str, ConfigDef]] = {
    ResourceType.TOPIC: TOPIC_CONFIGS,
    ResourceType.BROKER: BROKER_CONFIGS,
    ResourceType.GROUP: GROUP_CONFIGS,
    ResourceType.CLIENT_METRICS: CLIENT_METRICS_CONFIGS,
}
_LISTENER_ONLY = (
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
)
"""These change in a running broker only under a listener's prefix."""
_ID_DIGITS_MAX = 10
_SHOWN_LENGTH_MAX = 100
"""of a name that is told back: the whole of a long one would make the message too long for its answer"""


Change = tuple[str, int, str | None]
"""One operation of a request: name; SET, DELETE, APPEND or SUBTRACT; value."""


def altered(image: Image, resource: Resource, changes: Sequence[Change]) -> dict[str, str | None]:
    """The names that are touched and their new values; None removes."""
    current = image.configs.get(resource, {})
    out: dict[str, str | None] = {}
    for name, operation, value in changes:
        if operation == SET:
            out[name] = value
        elif operation == DELETE:
            out[name] = None
        elif operation in (APPEND, SUBTRACT):
            assert value is not None
            out[name] = _edited(TABLES[resource[0]].get(name), name, operation, current.get(name), value)
        else:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name}: there is no config operation {operation}")
    return out


def _edited(entry: ConfigDef | None, name: str, operation: int, current: str | None, value: str) -> str:
    if entry is None or entry.type is not ConfigType.LIST:
        verb = "APPEND" if operation == APPEND else "SUBTRACT"
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Can't {verb} to key {name} because its type is not LIST.")
    items = [item for item in split_list(current if current is not None else entry.default or "") if item]
    for item in split_list(value):
        if operation == APPEND and item not in items:
            items.append(item)
        elif operation == SUBTRACT and item in items:
            items.remove(item)
    return ",".join(items)


def records_of(image: Image, resource: Resource, values: Mapping[str, str | None]) -> list[Message]:
    """Records for what really changes; a broker's values are written again in any case, so that it loads them anew."""
    kind, owner = resource
    current = image.configs.get(resource, {})
    records: list[Message] = [
        ConfigRecord(resource_type=kind, resource_name=owner, name=name, value=value)
        for name, value in values.items()
        if current.get(name) != value or kind == ResourceType.BROKER
    ]
    isr_changes = MIN_ISR in values and current.get(MIN_ISR) != values[MIN_ISR]
    if isr_changes and image.eligible_leader_replicas_enabled and kind in (ResourceType.TOPIC, ResourceType.BROKER):
        records += _judged_anew(image, owner if kind == ResourceType.TOPIC else "")
    return records


def _judged_anew(image: Image, topic_name: str) -> list[Message]:
    """Who was eligible to lead was judged by the old number, except where nobody is in sync: nothing was committed
    there since, and only the eligible can bring such a partition back."""
    topics = image.topics.values() if not topic_name else [one for one in [image.topic(topic_name)] if one is not None]
    kept: list[Message] = [
        PartitionChangeRecord(
            topic_id=topic.id,
            partition_id=index,
            eligible_leader_replicas=list(one.eligible),
            last_known_elr=list(one.last_known_eligible),
        )
        for topic in topics
        for index, one in topic.partitions.items()
        if not one.isr and (one.eligible or one.last_known_eligible)
    ]
    return [ClearElrRecord(topic_name=topic_name), *kept]


def check_resource(image: Image, node: Node, resource: Resource, values: Mapping[str, str | None]) -> None:
    """KafkaError where the resource may not have these new values."""
    kind, owner = resource
    _check_lengths(values)
    after = {name: text for name, text in image.configs.get(resource, {}).items() if values.get(name, text) is not None}
    after |= {name: text for name, text in values.items() if text is not None}
    if kind == ResourceType.TOPIC:
        _check_topic(image, owner, after)
    elif kind == ResourceType.BROKER:
        _check_broker(image, node, owner, after, values)
    elif kind == ResourceType.GROUP:
        if not owner:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        check_group_configs(after, lambda name: _number(image, node, name))
    else:
        _check_metrics(owner, after)


def _number(image: Image, node: Node, name: str) -> int:
    value = broker_typed(image, node, name)
    assert isinstance(value, int)
    return value


def _check_lengths(values: Mapping[str, str | None]) -> None:
    for name, text in values.items():
        if text is not None and len(text) > CONFIG_VALUE_LENGTH_MAX:
            fault = f"{name}: the value is {len(text)} characters long, the limit is {CONFIG_VALUE_LENGTH_MAX}"
            raise KafkaError(ErrorCode.INVALID_CONFIG, fault)


def _check_topic(image: Image, name: str, after: Mapping[str, str]) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    fault = topic_name_fault(name)
    if fault is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    check_topic_configs(after)
    if name not in image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def broker_name_fault(node: Node, name: str) -> str | None:
    """Why a request about the broker `name` is not for this one; an empty name is the default of all."""
    if not name:
        return None
    asked = _node_id(name)
    if asked is None:
        return f"Node id must be an integer, but it is: {name[:_SHOWN_LENGTH_MAX]}"
    return None if asked == node.id else f"Unexpected broker id, expected {node.id}, but received {name}"


def _node_id(name: str) -> int | None:
    """As Kafka's: an int32, though of plain digits alone."""
    digits = name.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _ID_DIGITS_MAX):
        return None
    found = int(name)
    return found if -(1 << 31) <= found < 1 << 31 else None


def _check_broker(
    image: Image, node: Node, name: str, after: Mapping[str, str], values: Mapping[str, str | None]
) -> None:
    registered = _node_id(name) in image.brokers
    fault = (None if registered else broker_name_fault(node, name)) or _dynamic_fault(after, bool(name))
    if fault is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, fault)
    if "cordoned.log.dirs" in values and not are_known(image):
        level = image.metadata_version
        text = f"cordoned.log.dirs needs metadata.version {CORDONED_DIRECTORIES_FROM}, the cluster has {level}."
        raise KafkaError(ErrorCode.INVALID_CONFIG, text)
    if image.eligible_leader_replicas_enabled and MIN_ISR in values:
        if name:
            text = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
            raise KafkaError(ErrorCode.INVALID_CONFIG, text)
        if values[MIN_ISR] is None:
            text = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
            raise KafkaError(ErrorCode.INVALID_CONFIG, text)


def _dynamic_fault(configs: Mapping[str, str], one_broker: bool) -> str | None:
    known = {
        name: BROKER_CONFIGS[without_listener(name)] for name in configs if without_listener(name) in BROKER_CONFIGS
    }
    fixed = [name for name, entry in known.items() if entry.dynamic is Dynamic.READ_ONLY and name == entry.name]
    if fixed:
        return f"Cannot update these configs dynamically: {', '.join(fixed)}"
    bare = [name for name in known if name in _LISTENER_ONLY]
    if bare:
        return f"These configs can be updated only with a listener's prefix: {', '.join(bare)}"
    for name, entry in known.items():
        try:
            parse(entry, configs[name])
        except ValueError as fault:
            return str(fault)
    per_broker = [name for name, entry in known.items() if entry.dynamic is Dynamic.PER_BROKER or name != entry.name]
    if per_broker and not one_broker:
        return f"Cannot update these configs at default cluster level, give a broker id: {', '.join(per_broker)}"
    return None


def _check_metrics(name: str, after: Mapping[str, str]) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The name of a client metrics subscription cannot be empty.")
    for config, text in after.items():
        entry = CLIENT_METRICS_CONFIGS.get(config)
        if entry is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"{config}: there is no client metrics configuration of this name"
            )
        try:
            parse(entry, text)
        except ValueError as fault:
            code = ErrorCode.INVALID_REQUEST if config == "interval.ms" else ErrorCode.INVALID_CONFIG
            raise KafkaError(code, str(fault)) from None
