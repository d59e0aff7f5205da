"""Configurations change: IncrementalAlterConfigs, and AlterConfigs, which replaces all values of a resource."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.controller.changes import DELETE, SET, TABLES, Change, altered, check_resource, records_of
from penstock.core.controller.result import Result, check_record_count
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import Image, Resource
from penstock.protocol.generated import alter_configs_response, incremental_alter_configs_response
from penstock.protocol.generated.alter_configs_request import AlterConfigsRequest
from penstock.protocol.generated.alter_configs_response import AlterConfigsResponse
from penstock.protocol.generated.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from penstock.protocol.generated.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from penstock.protocol.message import Message

MayAlter = Callable[[Resource], ErrorCode]
"""NONE, or the code that refuses."""


def everything(_resource: Resource) -> ErrorCode:
    return ErrorCode.NONE


def decide_incremental_alter_configs(
    image: Image, node: Node, request: IncrementalAlterConfigsRequest, *, may_alter: MayAlter = everything
) -> Result[IncrementalAlterConfigsResponse]:
    asked = [
        ((one.resource_type, one.resource_name), [(c.name, c.config_operation, c.value) for c in one.configs])
        for one in request.resources
    ]
    errors, records = _decide(image, node, asked, may_alter, replace=False)
    responses = [
        incremental_alter_configs_response.AlterConfigsResourceResponse(
            error_code=error.code, error_message=error.message, resource_type=kind, resource_name=name
        )
        for ((kind, name), _), error in zip(asked, errors, strict=True)
    ]
    response = IncrementalAlterConfigsResponse(responses=responses)
    return Result(response, [] if request.validate_only else records)


def decide_alter_configs(
    image: Image, node: Node, request: AlterConfigsRequest, *, may_alter: MayAlter = everything
) -> Result[AlterConfigsResponse]:
    asked: list[tuple[Resource, list[Change]]] = [
        ((one.resource_type, one.resource_name), [(c.name, SET, c.value) for c in one.configs])
        for one in request.resources
    ]
    errors, records = _decide(image, node, asked, may_alter, replace=True)
    responses = [
        alter_configs_response.AlterConfigsResourceResponse(
            error_code=error.code, error_message=error.message, resource_type=kind, resource_name=name
        )
        for ((kind, name), _), error in zip(asked, errors, strict=True)
    ]
    return Result(AlterConfigsResponse(responses=responses), [] if request.validate_only else records)


_FINE = KafkaError(ErrorCode.NONE)


def _decide(
    image: Image, node: Node, asked: Sequence[tuple[Resource, list[Change]]], may_alter: MayAlter, replace: bool
) -> tuple[list[KafkaError], list[Message]]:
    """An error for each resource, in the order asked, and the records of those without one."""
    times = Counter(resource for resource, _ in asked)
    errors: list[KafkaError] = []
    records: list[Message] = []
    for resource, changes in asked:
        try:
            if times[resource] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            _check_request(resource, changes)
            refusal = may_alter(resource)
            if refusal is not ErrorCode.NONE:
                raise KafkaError(refusal)
            values = altered(image, resource, changes)
            if replace:
                values |= {name: None for name in image.configs.get(resource, {}) if name not in values}
            check_resource(image, node, resource, values)
            new = records_of(image, resource, values)
            check_record_count(len(records) + len(new))
        except KafkaError as error:
            errors.append(error)
            continue
        errors.append(_FINE)
        records += new
    return errors, records


def _check_request(resource: Resource, changes: Sequence[Change]) -> None:
    if resource[0] not in TABLES:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource[0]}")
    if len({name for name, _, _ in changes}) < len(changes):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    without_value = [name for name, operation, value in changes if value is None and operation != DELETE]
    if without_value:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Null value not supported for : " + ", ".join(without_value))
