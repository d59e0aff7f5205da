"""From our arguments to librdkafka's properties, and its log lines and errors to Python's logging."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError as LibraryError
from confluent_kafka import KafkaException

from penstock.client.errors import ClientError, ConfigRefused, from_exception, from_library

BOOTSTRAP_VARIABLE = "PENSTOCK_BOOTSTRAP_SERVERS"
BOOTSTRAP_DEFAULT = "localhost:9092"

log = logging.getLogger("penstock.client")

Config = Mapping[str, Any]


def bootstrap(servers: str | Iterable[str] | None) -> str:
    """`servers` as one string; where none are given, the environment's, else localhost."""
    if servers is None:
        return os.environ.get(BOOTSTRAP_VARIABLE) or BOOTSTRAP_DEFAULT
    return servers if isinstance(servers, str) else ",".join(servers)


def properties(servers: str | Iterable[str] | None, defaults: Config, overrides: Config | None) -> dict[str, Any]:
    """librdkafka's properties: ours first, the caller's win. Python's True and None become what the library expects."""
    merged = {"bootstrap.servers": bootstrap(servers), "client.id": "penstock", **defaults, **(overrides or {})}
    return {name: value for name, value in merged.items() if value is not None}


def refused(exc: Exception, doing: str) -> ClientError:
    """A client could not be made: nearly always an unknown property or a bad value, which the library names."""
    if isinstance(exc, KafkaException):
        error = from_exception(exc, doing)
        return ConfigRefused(
            f"{error}; the properties are listed in librdkafka's CONFIGURATION.md", code=error.code, name=error.name
        )
    return ConfigRefused(f"cannot {doing}: {exc}")


class Faults:
    """What the library reports outside of any call: logged; the first fatal one is kept and raised by the next call."""

    def __init__(self) -> None:
        self.fatal: ClientError | None = None
        self.last: LibraryError | None = None

    def __call__(self, error: LibraryError) -> None:
        self.last = error
        if error.fatal():
            self.fatal = self.fatal or from_library(error, "go on")
            log.error("fatal: %s", error.str())
        else:
            log.debug("%s: %s", error.name(), error.str())

    def raise_fatal(self) -> None:
        if self.fatal is not None:
            raise self.fatal
