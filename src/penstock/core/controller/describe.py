"""Configurations shown: DescribeConfigs, with where each value comes from and what it means; ListConfigResources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.base.configs.broker import BROKER_CONFIGS, DYNAMIC_ONLY, without_listener
from penstock.base.configs.define import ConfigDef, ConfigSource, Dynamic, ResourceType
from penstock.base.configs.group import GROUP_CONFIGS
from penstock.base.configs.metrics import CLIENT_METRICS_CONFIGS
from penstock.base.configs.topic import TOPIC_CONFIGS
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import topic_name_fault
from penstock.core.controller.changes import broker_name_fault
from penstock.core.controller.configs import MayAlter, everything
from penstock.core.metadata.effective import (
    Layer,
    Node,
    Setting,
    broker_layers,
    broker_settings,
    inherited,
    readable,
)
from penstock.core.metadata.image import Image
from penstock.protocol.generated.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from penstock.protocol.generated.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from penstock.protocol.generated.list_config_resources_request import ListConfigResourcesRequest
from penstock.protocol.generated.list_config_resources_response import ConfigResource, ListConfigResourcesResponse

Shown = Iterable[tuple[ConfigDef | None, Setting, list[Setting]]]
"""A configuration (None where no table knows it), its effective value, and all places that set it."""


def describe_configs(
    image: Image, node: Node, request: DescribeConfigsRequest, *, may_describe: MayAlter = everything
) -> DescribeConfigsResponse:
    results = []
    for asked in request.resources:
        result = DescribeConfigsResult(
            resource_type=asked.resource_type, resource_name=asked.resource_name, error_message=None
        )
        try:
            refusal = may_describe((asked.resource_type, asked.resource_name))
            if refusal is not ErrorCode.NONE:
                raise KafkaError(refusal)
            wanted = set(asked.configuration_keys or ())
            result.configs = [
                _entry(request, entry, setting, places, asked.resource_type)
                for entry, setting, places in _shown(image, node, asked)
                if not wanted or setting.name in wanted
            ]
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
        results.append(result)
    return DescribeConfigsResponse(results=results)


def _shown(image: Image, node: Node, asked: DescribeConfigsResource) -> Shown:
    kind, name = asked.resource_type, asked.resource_name
    layers = broker_layers(image, node)
    if kind == ResourceType.TOPIC:
        _check_topic(image, name)
        return _resource(TOPIC_CONFIGS, image.config(ResourceType.TOPIC, name), ConfigSource.TOPIC, layers)
    if kind == ResourceType.BROKER:
        if not name:
            return _cluster_default(layers)
        fault = broker_name_fault(node, name)
        if fault is not None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, fault)
        return _broker(layers, node)
    if kind == ResourceType.GROUP and name:
        return _resource(GROUP_CONFIGS, image.config(ResourceType.GROUP, name), ConfigSource.GROUP, layers)
    if kind == ResourceType.CLIENT_METRICS and name:
        own = image.config(ResourceType.CLIENT_METRICS, name)
        return _resource(CLIENT_METRICS_CONFIGS, own, ConfigSource.CLIENT_METRICS, layers)
    if kind in (ResourceType.GROUP, ResourceType.CLIENT_METRICS):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The resource name must not be empty.")
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {kind}")


def _check_topic(image: Image, name: str) -> None:
    fault = topic_name_fault(name)
    if fault is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if name not in image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _resource(
    table: Mapping[str, ConfigDef], own: Mapping[str, str], source: ConfigSource, layers: tuple[Layer, ...]
) -> Shown:
    for entry in table.values():
        if entry.internal and entry.name not in own:
            continue
        places = broker_settings(layers, entry.synonyms[0].name) if entry.synonyms else []
        if not entry.synonyms and source is ConfigSource.GROUP:
            places = [Setting(entry.name, entry.default, ConfigSource.DEFAULT)]
        if entry.name in own:
            value = readable(entry, own[entry.name])
            places.insert(0, Setting(entry.name, value, source))
        else:
            value = readable(entry, inherited(layers, entry)[0])
        yield entry, Setting(entry.name, value, places[0].source if places else ConfigSource.DEFAULT), places


def _broker(layers: tuple[Layer, ...], node: Node) -> Shown:
    """Everything, and what was set under names that no table knows; `broker.id` shows the node's id, as in Kafka."""
    static = layers[-1]
    layers = (*layers[:-1], static._replace(values={"broker.id": str(node.id)} | dict(static.values)))
    set_names = [name for layer in layers for name in layer.values]
    names = [row.name for row in BROKER_CONFIGS.values() if not row.internal and row.name not in DYNAMIC_ONLY]
    for name in dict.fromkeys(names + sorted(set_names)):
        entry = BROKER_CONFIGS.get(without_listener(name))
        places = broker_settings(layers, name)
        value = places[0].value if places else None
        source = places[0].source if places else ConfigSource.DEFAULT
        yield entry, Setting(name, readable(entry, value) if entry else value, source), places


def _cluster_default(layers: tuple[Layer, ...]) -> Shown:
    """Only what was set for all brokers through the API."""
    shared = next(layer for layer in layers if layer.source is ConfigSource.DYNAMIC_DEFAULT_BROKER)
    for name, value in shared.values.items():
        setting = Setting(name, value, shared.source)
        yield BROKER_CONFIGS.get(without_listener(name)), setting, [setting]


def _entry(
    request: DescribeConfigsRequest, entry: ConfigDef | None, setting: Setting, places: list[Setting], kind: int
) -> DescribeConfigsResourceResult:
    sensitive = entry is None or entry.sensitive  # what no table knows may be a secret
    fixed = kind == ResourceType.BROKER and (entry is None or entry.dynamic is Dynamic.READ_ONLY)
    return DescribeConfigsResourceResult(
        name=setting.name,
        value=None if sensitive else setting.value,
        read_only=fixed,
        config_source=setting.source,
        is_sensitive=sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=p.name, value=None if sensitive else p.value, source=p.source) for p in places
        ]
        if request.include_synonyms
        else [],
        config_type=entry.type if entry is not None else 0,
        documentation=entry.documentation if entry is not None and request.include_documentation else None,
    )


_LISTED = (
    ResourceType.GROUP,
    ResourceType.CLIENT_METRICS,
    ResourceType.BROKER_LOGGER,
    ResourceType.BROKER,
    ResourceType.TOPIC,
)


def list_config_resources(
    image: Image, request: ListConfigResourcesRequest, version: int
) -> ListConfigResourcesResponse:
    """Resources that can have configurations: every topic and broker, and each group or subscription that has some.

    Version 0 knows client metrics only.
    """
    wanted = [ResourceType.CLIENT_METRICS] if version == 0 else request.resource_types or list(_LISTED)
    unsupported = [kind for kind in wanted if kind not in _LISTED]
    if unsupported:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    found = [
        ConfigResource(resource_name=name, resource_type=kind)
        for kind in dict.fromkeys(wanted)
        for name in _names(image, kind)
    ]
    return ListConfigResourcesResponse(config_resources=found)


def _names(image: Image, kind: int) -> list[str]:
    if kind == ResourceType.TOPIC:
        return list(image.topics)
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(broker) for broker in sorted(image.brokers)]
    return [name for of_kind, name in image.configs if of_kind == kind]
