"""The configurations of a client-metrics subscription (KIP-714)."""

from __future__ import annotations

from penstock.base.configs.define import ConfigDef, ConfigType, table
from penstock.base.configs.values import split_list
from penstock.base.expressions import expression_fault

MATCH_PARAMETERS = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
INTERVAL_MS_MIN, INTERVAL_MS_MAX = 100, 3_600_000


def _match_fault(text: str) -> str | None:
    for item in split_list(text):
        parameter, equals, pattern = (part.strip() for part in item.partition("="))
        if not equals or parameter not in MATCH_PARAMETERS:
            return f"{item!r} is not a pattern of the form name=regular expression, with one of: " + ", ".join(
                MATCH_PARAMETERS
            )
        fault = expression_fault(pattern)
        if fault is not None:
            return f"{pattern!r} is not a regular expression: {fault}"
    return None


CLIENT_METRICS_CONFIGS = table(
    ConfigDef(
        "interval.ms", ConfigType.INT, "300000", low=INTERVAL_MS_MIN, high=INTERVAL_MS_MAX,
        doc="How often matching clients push their metrics.",
    ),
    ConfigDef(
        "match", ConfigType.LIST, "", check=_match_fault, unique=True,
        doc="Which clients the subscription is for, as name=regular expression; empty for all.",
    ),
    ConfigDef(
        "metrics", ConfigType.LIST, "", unique=True,
        doc="Prefixes of the metrics that are wanted, or * for all; empty for none.",
    ),
)  # fmt: skip
