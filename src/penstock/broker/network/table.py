"""A row of the table of APIs, and how it is found by its key."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from penstock.core.security.acl import Acl
from penstock.protocol.registry import APIS, request_class, response_class


class Row:
    """One API: its versions, where it is handled, what it needs to be allowed. Its modules load on first use."""

    def __init__(
        self,
        key: int,
        handler: str,
        acl: Acl | None,
        *,
        versions: tuple[int, int] | None = None,
        advertised_from: int | None = None,
        raw: bool = False,
        overlaps: bool = False,
        forwarded: bool = False,
    ) -> None:
        api = APIS[key]
        self.key = key
        self.name = api.name
        self.flexible_from = api.flexible_from
        self.min_version, self.max_version = versions or (api.min_version, api.latest_stable)
        self.advertised_from = self.min_version if advertised_from is None else advertised_from
        self.acl = acl
        self.raw = raw
        """the handler takes the frame itself"""
        self.overlaps = overlaps
        """requests behind it may start while it waits"""
        self.forwarded = forwarded
        """only the active controller can answer it"""
        self.requests = 0
        self.module = f"penstock.broker.handlers.{handler}"
        self._loaded: Any = None

    @property
    def handler(self) -> Any:
        if self._loaded is None:
            self._loaded = import_module(self.module)
        return self._loaded

    @property
    def request_class(self) -> Any:
        return request_class(self.key)

    @property
    def response_class(self) -> Any:
        return response_class(self.key)


class Table:
    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self._by_key = {row.key: row for row in rows}
        assert len(self._by_key) == len(rows), "an API stands in the table twice"

    def find(self, key: int) -> Row | None:
        return self._by_key.get(key)
