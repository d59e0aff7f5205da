"""The results of the examples, drawn. Each function takes {topic: {key: value}} and gives a figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import generated
from matplotlib.figure import Figure

Tables = dict[str, dict[Any, Any]]
INK, ALARM, QUIET = "#1f3b4d", "#c8553d", "#8fb1c2"


def log_alerts(tables: Tables) -> Figure:
    figure, axes = _figure("Error rate by minute, and the alerts")
    minutes = tables["log-minutes"]
    for service in sorted({window.key for window in minutes}):
        mine = sorted((window.start, minute) for window, minute in minutes.items() if window.key == service)
        rates = [100 * minute.errors / minute.lines for _, minute in mine]
        ill = service in tables["alerts"]
        axes.plot(
            [_minute(start) for start, _ in mine],
            rates,
            color=ALARM if ill else QUIET,
            label=service,
            lw=2 if ill else 1,
        )
    axes.axhline(10, color=INK, lw=0.8, ls=":")
    axes.set(xlabel="minute", ylabel="errors, % of lines")
    axes.legend(frameon=False)
    return figure


def metrics_by_minute(tables: Tables) -> Figure:
    figure, axes = _figure("Memory by minute: mean, lowest to highest")
    rows = tables["metrics-by-minute"]
    for name, colour in (("alpha/memory", QUIET), ("beta/memory", ALARM), ("gamma/memory", INK)):
        mine = sorted((window.start, summary) for window, summary in rows.items() if window.key == name)
        at = [_minute(start) for start, _ in mine]
        axes.fill_between(
            at, [one.lowest for _, one in mine], [one.highest for _, one in mine], color=colour, alpha=0.2
        )
        axes.plot(at, [one.total / one.count for _, one in mine], color=colour, label=name)
    axes.set(xlabel="minute", ylabel="%")
    axes.legend(frameon=False)
    return figure


def viewed_together(tables: Tables) -> Figure:
    figure, axes = _figure("Who looked at this also looked at ...")
    together = tables["viewed-together"]
    items = sorted(together, key=lambda item: sorted(together[item], key=together[item].get)[-3:])
    grid = [[together[row].get(column, 0) for column in items] for row in items]
    axes.imshow(grid, cmap="YlGnBu")
    axes.set_xticks(range(len(items)), items, rotation=60, ha="right")
    axes.set_yticks(range(len(items)), items)
    return figure


def search_relevance(tables: Tables) -> Figure:
    figure, axes = _figure("Click-through of each result")
    rates = {key: 100 * value.clicked / value.shown for key, value in sorted(tables["click-through"].items())}
    colours = [ALARM if key == "red shoes > shoes-1" else QUIET for key in rates]
    axes.barh(list(rates), list(rates.values()), color=colours)
    axes.invert_yaxis()
    axes.set(xlabel="clicks, % of impressions")
    return figure


def enriched_orders(tables: Tables) -> Figure:
    figure, axes = _figure("Revenue by city")
    revenue = dict(sorted(tables["revenue-by-city"].items(), key=lambda pair: -pair[1]))
    axes.bar(list(revenue), list(revenue.values()), color=INK)
    axes.set(ylabel="revenue")
    return figure


PICTURES: dict[str, Callable[[Tables], Figure]] = {
    "log_alerts": log_alerts,
    "metrics_by_minute": metrics_by_minute,
    "viewed_together": viewed_together,
    "search_relevance": search_relevance,
    "enriched_orders": enriched_orders,
}


def _figure(title: str) -> tuple[Figure, Any]:
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, loc="left", color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _minute(start: int) -> int:
    return (start - generated.BEGIN) // generated.MINUTE
