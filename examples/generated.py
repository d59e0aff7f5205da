"""Made-up data for the examples, the same at every run: (topic, key, value, time in ms), in the order of time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random
from typing import Any

Row = tuple[str, str | None, Any, int]

BEGIN = 1_767_607_200_000
"""2026-01-05 10:00 UTC, a Monday."""
MINUTE = 60_000


def logs(minutes: int = 30) -> Iterator[Row]:
    """Five services; `payments` is ill from the tenth minute to the fifteenth."""
    random = Random(1)
    services = ["web", "search", "payments", "mail", "stock"]
    for second in range(minutes * 60):
        for service in random.choices(services, [8, 4, 3, 1, 2], k=random.randrange(4, 12)):
            ill = service == "payments" and 10 <= second // 60 < 15
            level = "ERROR" if random.random() < (0.4 if ill else 0.01) else random.choice(["INFO", "INFO", "WARN"])
            line = {"service": service, "level": level, "message": f"request {random.randrange(10**6)} {level.lower()}"}
            yield "logs", None, line, BEGIN + second * 1000 + random.randrange(1000)
    yield "logs", None, {"service": "web", "level": "INFO", "message": "the end"}, BEGIN + (minutes + 5) * MINUTE


def metrics(minutes: int = 60) -> Iterator[Row]:
    """Three hosts, load in waves, one of them with a leak."""
    random = Random(2)
    for tick in range(minutes * 6):
        at = BEGIN + tick * 10_000
        for number, host in enumerate(["alpha", "beta", "gamma"]):
            wave = 40 + 25 * math.sin(tick / 60 + number) + random.gauss(0, 4)
            leak = 30 + (tick * 0.12 if host == "beta" else 0) + random.gauss(0, 1)
            for metric, value in (("cpu", max(0.0, wave)), ("memory", leak)):
                yield "metrics", host, {"host": host, "metric": metric, "value": round(value, 2)}, at


def views(users: int = 400) -> Iterator[Row]:
    """Visitors with a taste: most of what they look at is of one kind."""
    random = Random(3)
    kinds = {
        "tent": ["tent", "sleeping bag", "camping stove", "torch"],
        "bike": ["bike", "helmet", "lock", "pump"],
        "kitchen": ["pan", "knife", "board", "scale"],
    }
    rows: list[Row] = []
    for user in range(users):
        at = BEGIN + random.randrange(4 * 60 * MINUTE)
        taste = random.choice(list(kinds.values()))
        for _ in range(random.randrange(2, 7)):
            item = random.choice(taste if random.random() < 0.9 else random.choice(list(kinds.values())))
            rows.append(("views", f"u{user}", {"user": f"u{user}", "item": item}, at))
            at += random.randrange(10_000, 4 * MINUTE)
    yield from sorted(rows, key=lambda row: row[3])
    yield "views", "end", {"user": "end", "item": "tent"}, BEGIN + 24 * 60 * MINUTE


def searches(count: int = 3000) -> Iterator[Row]:
    """Results are clicked for their place and for their worth; `red shoes` has a bad one on top."""
    random = Random(4)
    worth = {"red shoes": [0.05, 0.5, 0.3, 0.2], "kettle": [0.6, 0.3, 0.1, 0.1], "lamp": [0.4, 0.4, 0.2, 0.1]}
    rows: list[Row] = []
    for number in range(count):
        at = BEGIN + number * 700
        query = random.choice(list(worth))
        for position, value in enumerate(worth[query]):
            document = f"{query.split()[-1]}-{position + 1}"
            id_ = f"{number}-{position}"
            rows.append(("impressions", id_, {"query": query, "document": document, "position": position}, at))
            if random.random() < value / (1 + 0.3 * position):
                rows.append(("clicks", id_, {"document": document}, at + random.randrange(500, 25_000)))
    yield from sorted(rows, key=lambda row: row[3])
    end = BEGIN + count * 700 + 10 * MINUTE
    yield "impressions", "end", {"query": "kettle", "document": "kettle-1", "position": 0}, end
    yield "clicks", "end", {"document": "kettle-1"}, end


def shop(orders: int = 2000) -> Iterator[Row]:
    """Customers who come, move and go; orders all the while."""
    random = Random(5)
    names, cities = ["Anna", "Bert", "Clara", "David", "Emil", "Frida"], ["Bonn", "Köln", "Mainz", "Trier"]
    at = BEGIN
    for number in range(60):
        yield "customers", f"c{number}", {"name": random.choice(names), "city": random.choice(cities)}, at + number
    for _ in range(orders):
        at += random.randrange(200, 3000)
        chance = random.random()
        who = f"c{random.randrange(62)}"
        if chance < 0.02:
            yield "customers", who, {"name": random.choice(names), "city": random.choice(cities)}, at
        elif chance < 0.025:
            yield "customers", who, None, at
        else:
            yield "orders", f"o{at}", {"customer": who, "amount": random.randrange(5, 300)}, at
