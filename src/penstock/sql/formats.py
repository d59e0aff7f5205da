"""Which format the keys and values of each topic have: chosen by name, by a schema, or told from a sample.

`auto`, the default, looks at a sample: values that are all JSON objects are JSON with the members seen there, what is
all text is text, anything else stays bytes. Keys are text or bytes. `json` without a schema takes the members of the
sample's objects. Both engines are given the same schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from penstock.schemas.errors import SchemaError
from penstock.schemas.formats import Format
from penstock.schemas.plain import BYTES
from penstock.schemas.specs import NAMES, WITH_SCHEMA, Spec, format_of
from penstock.sql.catalog import Catalog
from penstock.sql.errors import SqlError, did_you_mean
from penstock.sql.sampling import guess, infer_json, sample
from penstock.sql.tables import TopicTable

AUTO = "auto"
CHOICES = (AUTO, *NAMES)
EVERY = ""
"""The topic name under which a choice stands for all topics."""

ByTopic = Mapping[str, str]


@dataclass(frozen=True)
class Side:
    """What was chosen for keys, or for values; by topic, or for all."""

    formats: ByTopic = field(default_factory=dict)
    schemas: ByTopic = field(default_factory=dict)
    """texts: JSON Schema or Spark DDL, Avro, .proto"""
    messages: ByTopic = field(default_factory=dict)
    """Protobuf: which message of the file"""

    def of(self, topic: str) -> tuple[str, str | None, str | None]:
        schema = _chosen(self.schemas, topic)
        name = _chosen(self.formats, topic) or (guess_by_schema(schema) if schema else AUTO)
        return name, schema, _chosen(self.messages, topic)


def _chosen(choices: ByTopic, topic: str) -> str | None:
    return choices.get(topic, choices.get(EVERY))


def guess_by_schema(schema: str) -> str:
    """Avro schemas have a type that is a record; .proto texts have messages; the rest is JSON Schema or DDL."""
    stripped = schema.lstrip()
    if stripped.startswith("{"):
        return "avro" if '"record"' in stripped else "json"
    return "protobuf" if "message " in stripped and "{" in stripped else "json"


def check_topics(catalog: Catalog, *sides: Side) -> None:
    """A choice for a topic that is not there was meant for another."""
    for side in sides:
        for choices in (side.formats, side.schemas, side.messages):
            for topic in choices:
                if topic != EVERY:
                    catalog.partitions(topic)


def table_of(catalog: Catalog, topic: str, key: Side, value: Side) -> TopicTable:
    catalog.partitions(topic)
    sampled = _Sampled(catalog, topic)
    keys, values = _built(sampled, "key", key), _built(sampled, "value", value)
    return TopicTable(topic, keys, values, sampled.was_empty)


class _Sampled:
    """The sample of a topic, read when something asks for it."""

    def __init__(self, catalog: Catalog, topic: str) -> None:
        self.catalog = catalog
        self.topic = topic

    @cached_property
    def columns(self) -> pa.Table:
        return sample(self.catalog, self.topic)

    @property
    def was_empty(self) -> bool:
        return "columns" in vars(self) and not self.columns.num_rows


def _built(sampled: _Sampled, side: str, choice: Side) -> Format:
    name, schema, message = choice.of(sampled.topic)
    if name not in CHOICES:
        hint = did_you_mean(name, CHOICES) or f"there are {', '.join(CHOICES)}"
        raise SqlError(f"no format is called {name!r} (the {side}s of {sampled.topic})", hint)
    if name == AUTO:
        return guess(sampled.columns.column(side), objects=side == "value")
    if name == "json" and schema is None:
        return infer_json(sampled.columns.column(side)) or BYTES
    if name in WITH_SCHEMA and schema is None:
        raise SqlError(
            f"the {side}s of {sampled.topic} are {name}, and that needs a schema",
            f"give it by --{side}-schema FILE, or --{side}-schema {sampled.topic}=FILE where topics differ",
        )
    try:
        return format_of(Spec(name, schema, message))
    except SchemaError as error:
        raise SqlError(f"the schema of the {side}s of {sampled.topic}: {error}") from error
