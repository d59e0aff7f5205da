"""The options of a read, by the names of Spark's Kafka source, checked and typed: `parse(options, streaming=...)`.

An option that is not known is an error, as a misspelt one would otherwise be a read of something else. Names do not
depend on case, as always in Spark.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.pipeline.source import bounds, subscription
from penstock.pipeline.source.bounds import AtEdge, Bound
from penstock.pipeline.source.consumer_configs import CONSUMER_CONFIGS, SET_BY_THE_SOURCE
from penstock.pipeline.source.subscription import Subscription
from penstock.wire import security
from penstock.wire.errors import InvalidSecurity
from penstock.wire.offsets import EARLIEST, LATEST
from penstock.wire.security import PLAINTEXT, Security

BOOTSTRAP = "kafka.bootstrap.servers"
KAFKA = "kafka."
READ_NAMES = (
    BOOTSTRAP,
    "bootstrap",
    *subscription.NAMES,
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "groupIdPrefix",
    "columns",
    "pushFilters",
    "commitOffsets",
    "batchRows",
    "kafkaConsumer.pollTimeoutMs",
)
ACCEPTED = frozenset({"fetchoffset.numretries", "fetchoffset.retryintervalms"})
"""Options of Spark's source about its own retries: taken, so that its programs run unchanged, and of no effect."""
ENDING = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
TRIGGERS = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
STRATEGIES = ("error", "latest")
ISOLATIONS = ("read_uncommitted", "read_committed")
UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
TRIGGER_DELAY_MS = 15 * 60_000
TASK_TIMEOUT_MS = 120_000
API_TIMEOUT_MS = 60_000
BATCH_ROWS = 65_536
BATCH_ROWS_MAX = 1_048_576


class OptionError(ValueError):
    """An option that is unknown, missing, or has a value that cannot be followed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one batch of a stream takes, in offsets."""

    most: int | None = None
    least: int | None = None
    delay_ms: int = TRIGGER_DELAY_MS
    """after which a batch is made even of less than `least`."""


@dataclass(frozen=True, slots=True)
class Split:
    """Into how many tasks the offsets of a batch are divided: one per partition, or more where these say so."""

    least_tasks: int | None = None
    most_offsets: int | None = None


@dataclass(frozen=True, slots=True)
class ReadOptions:
    bootstrap: str
    subscription: Subscription
    starting: Bound
    ending: Bound
    latest_if_no_record: bool
    """A starting time that no record has reached: begin at the end, instead of failing."""
    limits: Limits
    split: Split
    fail_on_data_loss: bool
    include_headers: bool
    columns: tuple[str, ...] | None
    isolation: str
    group_id: str | None
    group_prefix: str
    commit_offsets: bool
    push_filters: bool
    """Filters narrow what is read. Only for a data frame that one query uses once: Spark 4.2 keeps the ranges that a
    filter left, and gives them to every other use of the same frame, filtered or not (two sides of a union, a second
    action). Needs spark.sql.python.filterPushdown.enabled."""
    batch_rows: int
    task_timeout_ms: int
    """how long a task waits for a record that does not come."""
    api_timeout_ms: int
    """how long a stream waits for a cluster that has answered before."""
    client: dict[str, str] = field(default_factory=dict)
    """Kafka's own consumer settings, without the `kafka.` in front, and without those about security."""
    security: Security = PLAINTEXT


def parse(options: Mapping[str, str], *, streaming: bool | None, others: Iterable[str] = ()) -> ReadOptions:
    """`streaming`: None where that is not known yet, as when Spark asks for the schema. `others` are names of options
    that somebody else reads, those of the decoders for instance."""
    given = {name.lower(): str(value) for name, value in options.items()}
    check_names(given, [*READ_NAMES, *others])
    _check_place(given, streaming)
    client = {name.removeprefix(KAFKA): value for name, value in given.items() if name.startswith(KAFKA)}
    try:
        return ReadOptions(
            bootstrap=_bootstrap(given),
            subscription=subscription.parse(given),
            starting=_starting(given, streaming),
            ending=_ending(given),
            latest_if_no_record=_choice(given, "startingOffsetsByTimestampStrategy", STRATEGIES) == "latest",
            limits=_limits(given),
            split=Split(_count(given, "minPartitions"), _count(given, "maxRecordsPerPartition")),
            fail_on_data_loss=_flag(given, "failOnDataLoss", True),
            include_headers=_flag(given, "includeHeaders", False),
            columns=_columns(given),
            isolation=_choice(given, "kafka.isolation.level", ISOLATIONS),
            group_id=given.get("kafka.group.id") or None,
            group_prefix=given.get("groupidprefix") or "penstock",
            commit_offsets=_flag(given, "commitOffsets", True),
            push_filters=_flag(given, "pushFilters", False),
            batch_rows=min(_count(given, "batchRows") or BATCH_ROWS, BATCH_ROWS_MAX),
            task_timeout_ms=_count(given, "kafkaConsumer.pollTimeoutMs") or TASK_TIMEOUT_MS,
            api_timeout_ms=_count(given, "kafka.default.api.timeout.ms") or API_TIMEOUT_MS,
            client=security.without(client),
            security=security.parse(client, KAFKA),
        )
    except (bounds.BoundError, subscription.SubscriptionError, InvalidSecurity) as error:
        raise OptionError(str(error)) from None


def check_names(given: Mapping[str, str], known: Iterable[str]) -> None:
    """`given` by lower-case names. Says which name was probably meant."""
    names = {name.lower(): name for name in known}
    for name in given:
        if name in names or name in ACCEPTED:
            continue
        if name.startswith(KAFKA):
            _check_consumer_config(name)
            continue
        if name == "path":
            raise OptionError(f'load({given[name]!r}): topics are named by .option("subscribe", ...), not by a path')
        raise OptionError(f"unknown option {name!r}{_meant(name, names)}")


def _check_consumer_config(name: str) -> None:
    own = name.removeprefix(KAFKA)
    reason = SET_BY_THE_SOURCE.get(own)
    if reason is not None:
        raise OptionError(f"{name} cannot be set: {reason}")
    # Any name may be a setting of somebody's own; one that is all but a known one is a slip of the hand.
    if own not in CONSUMER_CONFIGS and difflib.get_close_matches(own, CONSUMER_CONFIGS, 1, 0.85):
        raise OptionError(f"unknown option {name!r}{_meant(own, {one: KAFKA + one for one in CONSUMER_CONFIGS})}")


def _meant(name: str, names: Mapping[str, str]) -> str:
    close = difflib.get_close_matches(name, names, 1, 0.6)
    return f"; did you mean {names[close[0]]!r}?" if close else ""


def _check_place(given: Mapping[str, str], streaming: bool | None) -> None:
    for name in () if streaming is None else ENDING if streaming else TRIGGERS:
        if name.lower() in given:
            where = "a batch read has an end; a stream has none" if streaming else "a batch read has no triggers"
            raise OptionError(f"{name} does not apply here: {where}")


def _bootstrap(given: Mapping[str, str]) -> str:
    servers = given.get(BOOTSTRAP) or given.get("bootstrap")
    if not servers:
        raise OptionError(f"say where the cluster is: {BOOTSTRAP} (or bootstrap), for example localhost:9092")
    return servers


def _starting(given: Mapping[str, str], streaming: bool | None) -> Bound:
    """Spark's order: a time for all, then times, then offsets."""
    if "startingtimestamp" in given:
        return bounds.time("startingTimestamp", given["startingtimestamp"])
    if "startingoffsetsbytimestamp" in given:
        return bounds.times_by_partition("startingOffsetsByTimestamp", given["startingoffsetsbytimestamp"])
    if "startingoffsets" in given:
        return bounds.edge_or_offsets(
            "startingOffsets", given["startingoffsets"], LATEST if streaming is False else None
        )
    return AtEdge(LATEST if streaming else EARLIEST)


def _ending(given: Mapping[str, str]) -> Bound:
    if "endingtimestamp" in given:
        return bounds.time("endingTimestamp", given["endingtimestamp"])
    if "endingoffsetsbytimestamp" in given:
        return bounds.times_by_partition("endingOffsetsByTimestamp", given["endingoffsetsbytimestamp"])
    return bounds.edge_or_offsets("endingOffsets", given.get("endingoffsets", "latest"), EARLIEST)


def _limits(given: Mapping[str, str]) -> Limits:
    most, least = _count(given, "maxOffsetsPerTrigger"), _count(given, "minOffsetsPerTrigger")
    if most is not None and least is not None and least > most:
        raise OptionError(f"minOffsetsPerTrigger ({least}) is larger than maxOffsetsPerTrigger ({most})")
    return Limits(most, least, _duration_ms(given, "maxTriggerDelay", TRIGGER_DELAY_MS))


def _columns(given: Mapping[str, str]) -> tuple[str, ...] | None:
    text = given.get("columns")
    if text is None:
        return None
    return tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))


def _count(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if not text.strip().isdigit() or int(text) == 0:
        raise OptionError(f"{name} is a whole number above 0, not {text!r}")
    return int(text)


def _flag(given: Mapping[str, str], name: str, default: bool) -> bool:
    text = given.get(name.lower(), str(default)).strip().lower()
    if text not in ("true", "false"):
        raise OptionError(f"{name} is true or false, not {text!r}")
    return text == "true"


def _choice(given: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    text = given.get(name.lower(), choices[0]).strip().lower()
    if text not in choices:
        raise OptionError(f"{name} is {' or '.join(choices)}, not {text!r}")
    return text


def _duration_ms(given: Mapping[str, str], name: str, default_ms: int) -> int:
    text = given.get(name.lower())
    if text is None:
        return default_ms
    match = re.fullmatch(r"(\d+)\s*(ms|s|m|min|h|d)?", text.strip().lower())
    if match is None:
        raise OptionError(f"{name} is a duration such as 500ms, 30s, 15m or 1h, not {text!r}")
    return int(match.group(1)) * UNITS_MS[match.group(2) or "ms"]
