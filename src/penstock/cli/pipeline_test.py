"""`penstock pipeline test`: rows from a file through a pipeline on plain rows."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.cli.failures import Failure
from penstock.cli.output import note

if TYPE_CHECKING:
    from penstock.pipeline.topology.streams import Pipeline

ROW = 'a line is like {"topic": "orders", "key": "a", "value": {"id": 1}, "timestamp": 1767225600000}'


def run_rows(args: argparse.Namespace, pipeline: Pipeline) -> int:
    from penstock.pipeline.topology.driver import Driver
    from penstock.pipeline.topology.flow import PipelineError

    driver = Driver(pipeline)
    for number, row in _lines(args.rows):
        topic, timestamp = row.get("topic"), row.get("timestamp", 0)
        if not isinstance(topic, str):
            raise Failure(f"{args.rows}, line {number}: it names no topic", ROW)
        if not isinstance(timestamp, int):
            raise Failure(f"{args.rows}, line {number}: timestamp is ms since 1970, not {timestamp!r}", ROW)
        try:
            value = row.get("value")
            value = value if value is None or isinstance(value, str) else msgspec.json.encode(value)
            driver.send(topic, row.get("key"), _bytes(value), timestamp=timestamp)
        except (KeyError, TypeError) as error:
            raise Failure(f"{args.rows}, line {number}: {error.args[0]}") from None
        except PipelineError as error:
            raise Failure(f"{args.rows}, line {number}: {error}") from None
    found = [
        {"topic": topic, "key": row.key, "value": row.value, "timestamp": row.timestamp}
        for topic in dict.fromkeys(output.topic for output in driver.outputs)
        for row in driver.rows(topic)
    ]
    if args.expect is None:
        for one in found:
            print(msgspec.json.encode(one).decode())
        return 0
    return _compare(found, args.expect)


def _compare(found: list[dict[str, Any]], path: str) -> int:
    expected = [row for _, row in _lines(path)]
    plain = [msgspec.json.decode(msgspec.json.encode(one)) for one in found]
    for place in range(max(len(expected), len(plain))):
        wanted = expected[place] if place < len(expected) else None
        given = plain[place] if place < len(plain) else None
        if wanted != given:
            raise Failure(f"row {place + 1}: {_told(wanted)} was expected, {_told(given)} came out")
    note(f"{len(plain)} rows came out, as expected")
    return 0


def _lines(path: str) -> list[tuple[int, dict[str, Any]]]:
    rows = []
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        if line.strip():
            try:
                rows.append((number, msgspec.json.decode(line, type=dict[str, Any])))
            except msgspec.DecodeError as error:
                raise Failure(f"{path}, line {number}: {error}") from None
    return rows


def _bytes(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def _told(row: dict[str, Any] | None) -> str:
    return "nothing" if row is None else msgspec.json.encode(row).decode()
