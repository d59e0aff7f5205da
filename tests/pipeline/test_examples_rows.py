"""The examples on plain rows: what their data was made to show, they show."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from penstock.pipeline import Driver, Pipeline

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import enriched_orders
import generated
import log_alerts
import metrics_by_minute
import search_relevance
import viewed_together


def driven(pipeline: Pipeline, rows: Iterable[Any]) -> Driver:
    driver = Driver(pipeline)
    for topic, key, value, timestamp in rows:
        driver.send(topic, key, None if value is None else msgspec.json.encode(value), timestamp=timestamp)
    return driver


def test_the_ill_service_is_reported_for_each_minute_of_its_illness_and_no_other_is() -> None:
    driver = driven(log_alerts.pipeline, generated.logs())
    alerts = [row.value for row in driver.rows("alerts")]
    assert {alert.service for alert in alerts} == {"payments"}
    assert [(alert.minute - generated.BEGIN) // generated.MINUTE for alert in alerts] == [10, 11, 12, 13, 14]


def test_every_host_has_a_row_for_each_metric_and_minute_and_the_leak_grows() -> None:
    table = driven(metrics_by_minute.pipeline, generated.metrics()).table("metrics-by-minute")
    assert len(table) == 3 * 2 * 60
    leak = [value.total / value.count for key, value in sorted(table.items()) if key.key == "beta/memory"]
    assert leak[-1] > 2 * leak[0]
    assert all(value.count == 6 and value.lowest <= value.highest for value in table.values())


def test_things_of_a_kind_are_viewed_together() -> None:
    together = driven(viewed_together.pipeline, generated.views()).table("viewed-together")
    best = sorted(together["tent"], key=together["tent"].get, reverse=True)[:3]
    assert sorted(best) == ["camping stove", "sleeping bag", "torch"]
    assert together["tent"]["torch"] == together["torch"]["tent"]


def test_the_bad_result_on_top_is_found_out() -> None:
    rates = driven(search_relevance.pipeline, generated.searches()).table("click-through")
    rate = {key: value.clicked / value.shown for key, value in rates.items()}
    assert rate["red shoes > shoes-1"] < rate["red shoes > shoes-2"]
    assert rate["kettle > kettle-1"] > rate["kettle > kettle-2"]
    assert sum(value.shown for value in rates.values()) == 3000 * 4 + 1


def test_all_revenue_has_a_city_and_customers_are_counted_where_they_live() -> None:
    rows = list(generated.shop())
    driver = driven(enriched_orders.pipeline, rows)
    total = sum(value["amount"] for topic, _, value, _ in rows if topic == "orders")
    assert sum(driver.table("revenue-by-city").values()) == total
    living: dict[str, str] = {}
    for topic, key, value, _ in rows:
        if topic == "customers":
            living.pop(key, None)
            if value is not None:
                living[key] = value["city"]
    expected = {city: list(living.values()).count(city) for city in set(living.values())}
    assert {city: count for city, count in driver.table("customers-by-city").items() if count} == expected
