"""Which partitions are read: topics by name, topics by a pattern, or partitions one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.base.ids import TopicPartition

NAMES = ("subscribe", "subscribePattern", "assign")


class SubscriptionError(ValueError):
    """What is to be read was not said, or was said in a way that cannot be followed."""


@dataclass(frozen=True, slots=True)
class Topics:
    """All partitions of these topics, those added later too."""

    names: tuple[str, ...]

    def covers(self, partition: TopicPartition) -> bool:
        return partition.topic in self.names

    def __str__(self) -> str:
        return f"topics {', '.join(self.names)}"


@dataclass(frozen=True, slots=True)
class Pattern:
    """All topics whose whole name matches, those created later too; the cluster's internal topics never do."""

    expression: str

    def matches(self, topic: str) -> bool:
        return re.fullmatch(self.expression, topic) is not None

    def covers(self, partition: TopicPartition) -> bool:
        return self.matches(partition.topic)

    def __str__(self) -> str:
        return f"topics like {self.expression}"


@dataclass(frozen=True, slots=True)
class Assigned:
    """These partitions, and never another."""

    partitions: tuple[TopicPartition, ...]

    def covers(self, partition: TopicPartition) -> bool:
        return partition in self.partitions

    def __str__(self) -> str:
        return f"partitions {', '.join(str(one) for one in self.partitions)}"


Subscription = Topics | Pattern | Assigned


def parse(options: Mapping[str, str]) -> Subscription:
    """`options` by lower-case names. Exactly one of `subscribe`, `subscribePattern` and `assign`."""
    given = [name for name in NAMES if name.lower() in options]
    if len(given) != 1:
        said = " and ".join(given) if given else "none of them"
        raise SubscriptionError(
            f"say what to read by exactly one of {', '.join(NAMES)} (given: {said}), for example "
            '.option("subscribe", "orders,payments")'
        )
    text = options[given[0].lower()]
    if given[0] == "subscribe":
        return _topics(text)
    return _pattern(text) if given[0] == "subscribePattern" else _assigned(text)


def _topics(text: str) -> Topics:
    names = tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))
    if not names:
        raise SubscriptionError("subscribe is empty: name one topic or several, separated by commas")
    return Topics(names)


def _pattern(text: str) -> Pattern:
    if not text.strip():
        raise SubscriptionError("subscribePattern is empty: give a regular expression, for example orders-.*")
    try:
        re.compile(text)
    except re.error as error:
        raise SubscriptionError(f"subscribePattern {text!r} is no regular expression: {error}") from None
    return Pattern(text)


def _assigned(text: str) -> Assigned:
    try:
        partitions = tuple(
            sorted({TopicPartition(topic, int(one)) for topic, some in json.loads(text).items() for one in some})
        )
    except (ValueError, AttributeError, TypeError) as error:
        raise SubscriptionError(f'assign should be JSON such as {{"topic":[0,1]}}, not {text!r} ({error})') from None
    if not partitions:
        raise SubscriptionError('assign names no partition: give some, as in {"topic":[0,1]}')
    return Assigned(partitions)
