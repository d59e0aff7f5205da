"""The options of a write, checked and typed: `parse(options, streaming=...)`.

Names are those of Spark's Kafka sink where it has one, and do not depend on case. One that is not known is an error, as
a misspelt one would otherwise be a write of another kind.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.pipeline.sink.errors import SinkOptionError
from penstock.pipeline.sink.producer_configs import NUMBERS, PRODUCER_CONFIGS
from penstock.wire import security
from penstock.wire.errors import InvalidSecurity
from penstock.wire.security import PLAINTEXT, Security

KAFKA = "kafka."
BOOTSTRAP = "kafka.bootstrap.servers"
MARKER_TOPIC = "__penstock_sink_markers"
TRANSACTION_TIMEOUT_MS = 300_000
"""A task's transaction is open while Spark computes its rows; brokers allow up to 15 minutes unless told otherwise."""

NAMES = (
    BOOTSTRAP,
    "bootstrap",
    "topic",
    "includeHeaders",
    "exactlyOnce",
    "transactionalIdPrefix",
    "sinkName",
    "batchId",
    "markerTopic",
    "failOnLostMarkers",
    "failOnReplayMismatch",
    "compression",
    "acks",
)
SPARKS_OWN = frozenset({"checkpointlocation", "queryname", "path"})
"""What Spark itself puts among the options of a write."""

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ALL_ACKS = ("all", "-1")
ACKS = (*ALL_ACKS, "1", "0")
DECIDED_HERE = {
    "transactional.id": "it is made of the query and the task; transactionalIdPrefix gives the query a lasting name",
    "enable.idempotence": "a retried batch is never written twice; where rows may be, acks=1 or acks=0 says so",
    "key.serializer": "keys are binary or string columns",
    "value.serializer": "values are binary or string columns",
}


@dataclass(frozen=True, slots=True)
class SinkOptions:
    bootstrap: str
    topic: str | None
    """where all rows go; None: the column `topic` says it row by row."""
    include_headers: bool
    """whether the column `headers` is written, where there is one."""
    exactly_once: bool
    transactional_id_prefix: str | None
    sink_name: str
    """tells several writes of one batch apart, in foreachBatch."""
    batch: int | None
    """the batch that foreachBatch says it is at."""
    marker_topic: str
    fail_on_lost_markers: bool
    fail_on_replay_mismatch: bool
    acks: str
    client: dict[str, str] = field(default_factory=dict)
    """Kafka's own producer settings, without the `kafka.` in front, and without those about security."""
    security: Security = PLAINTEXT


def parse(options: Mapping[str, str], *, streaming: bool) -> SinkOptions:
    """A stream is written exactly once unless told otherwise; a batch write, only where asked for."""
    given = {name.lower(): str(value) for name, value in options.items()}
    _check_names(given)
    exactly_once = _flag(given, "exactlyOnce", streaming)
    client = _client(given)
    acks = _choice("acks", given.get("acks") or client.pop("acks", "all"), ACKS)
    if exactly_once and acks not in ALL_ACKS:
        raise SinkOptionError(
            f"acks={acks} cannot be exactly once: leave acks at all, or write with exactlyOnce=false (at least once)"
        )
    return SinkOptions(
        bootstrap=_bootstrap(given),
        topic=given.get("topic") or None,
        include_headers=_flag(given, "includeHeaders", True),
        exactly_once=exactly_once,
        transactional_id_prefix=given.get("transactionalidprefix") or None,
        sink_name=given.get("sinkname") or given.get("topic") or "topics",
        batch=_number(given, "batchId"),
        marker_topic=given.get("markertopic") or MARKER_TOPIC,
        fail_on_lost_markers=_flag(given, "failOnLostMarkers", True),
        fail_on_replay_mismatch=_flag(given, "failOnReplayMismatch", True),
        acks="all" if acks in ALL_ACKS else acks,
        client=security.without(client),
        security=_security(client),
    )


def _check_names(given: Mapping[str, str]) -> None:
    names = {name.lower(): name for name in NAMES}
    for name in given:
        if name in names or name in SPARKS_OWN:
            continue
        if name.startswith(KAFKA):
            _check_producer_config(name)
            continue
        close = difflib.get_close_matches(name, names, 1, 0.6)
        meant = f"; did you mean {names[close[0]]!r}?" if close else f"; there are {', '.join(NAMES)} and kafka.*"
        raise SinkOptionError(f"unknown option {name!r} of a write{meant}")


def _check_producer_config(name: str) -> None:
    own = name.removeprefix(KAFKA)
    reason = DECIDED_HERE.get(own)
    if reason is not None:
        raise SinkOptionError(f"{name} cannot be set: {reason}")
    # Any name may be a setting of somebody's own; one that is all but a known one is a slip of the hand.
    close = difflib.get_close_matches(own, PRODUCER_CONFIGS, 1, 0.85)
    if own not in PRODUCER_CONFIGS and close:
        raise SinkOptionError(f"unknown option {name!r} of a write; did you mean {KAFKA + close[0]!r}?")


def _client(given: Mapping[str, str]) -> dict[str, str]:
    client = {name.removeprefix(KAFKA): value for name, value in given.items() if name.startswith(KAFKA)}
    client.pop("bootstrap.servers", None)
    if "compression" in given:
        client["compression.type"] = given["compression"]
    _choice("compression", client.setdefault("compression.type", "none"), CODECS)
    client.setdefault("transaction.timeout.ms", str(TRANSACTION_TIMEOUT_MS))
    for name in sorted(NUMBERS & client.keys()):
        if not client[name].strip().isdigit():
            raise SinkOptionError(f"{KAFKA}{name} is a whole number, not {client[name]!r}")
    return client


def _security(client: Mapping[str, str]) -> Security:
    try:
        return security.parse(client, KAFKA)
    except InvalidSecurity as error:
        raise SinkOptionError(str(error)) from None


def _bootstrap(given: Mapping[str, str]) -> str:
    servers = given.get(BOOTSTRAP) or given.get("bootstrap")
    if not servers:
        raise SinkOptionError(f"say where the cluster is: {BOOTSTRAP} (or bootstrap), for example localhost:9092")
    return servers


def _flag(given: Mapping[str, str], name: str, default: bool) -> bool:
    return _choice(name, given.get(name.lower(), str(default)), ("true", "false")) == "true"


def _number(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is not None and not text.isdigit():
        raise SinkOptionError(f"{name} is a whole number, not {text!r}")
    return None if text is None else int(text)


def _choice(name: str, text: str, choices: tuple[str, ...]) -> str:
    chosen = text.strip().lower()
    if chosen not in choices:
        raise SinkOptionError(f"{name} is one of {', '.join(choices)}, not {text!r}")
    return chosen
