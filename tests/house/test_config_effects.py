"""A configuration says that it has an effect if, and only if, something in Penstock reads it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from penstock.base.configs.broker import BROKER_CONFIGS
from penstock.base.configs.define import ConfigDef
from penstock.base.configs.group import GROUP_CONFIGS
from penstock.base.configs.metrics import CLIENT_METRICS_CONFIGS
from penstock.base.configs.topic import TOPIC_CONFIGS
from tests.house.tracked import tree, written_by_hand

DEFINITIONS = "src/penstock/base/configs/"
NOT_THE_BROKER = tuple(
    f"src/penstock/{room}/"
    for room in ("cli", "client", "columnar", "pipeline", "sim", "sql", "tables", "testing", "wire")
)
"""These set configurations, or speak of a client's; they do not make them work."""

NAMED_WITHOUT_EFFECT = {
    "src/penstock/core/controller/changes.py": "which names may only be changed under a listener's prefix",
}


def test_topic_configurations_say_truly_whether_they_have_an_effect():
    assert _misleading(TOPIC_CONFIGS, _read()) == []


def test_broker_configurations_say_truly_whether_they_have_an_effect():
    """A broker's configuration is also read through the topic or group configuration whose default it gives."""
    read = _read()
    rows = [*TOPIC_CONFIGS.values(), *GROUP_CONFIGS.values()]
    through = {one.name for row in rows if row.name in read for one in row.synonyms}
    assert _misleading(BROKER_CONFIGS, read | through) == []


def test_group_configurations_say_truly_whether_they_have_an_effect():
    assert _misleading(GROUP_CONFIGS, _read()) == []


def test_client_metrics_configurations_say_truly_whether_they_have_an_effect():
    assert _misleading(CLIENT_METRICS_CONFIGS, _read()) == []


def _misleading(table: dict[str, ConfigDef], read: set[str]) -> list[str]:
    return [
        f"{name}: effect={row.effect}, yet it is {'read' if name in read else 'read nowhere'}"
        for name, row in table.items()
        if row.effect != (name in read)
    ]


def _read() -> set[str]:
    """Every string in the code that makes configurations work; names of configurations are among them."""
    return {
        one
        for path in written_by_hand("src/")
        if not path.startswith((DEFINITIONS, *NOT_THE_BROKER)) and path not in NAMED_WITHOUT_EFFECT
        for one in _strings(path)
    }


def _strings(path: str) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
