"""Counters of one topic's traffic on this broker; its partitions share them."""

from __future__ import annotations


class Traffic:
    __slots__ = ("bytes_in", "bytes_out", "failed_fetches", "failed_produces", "fetches", "messages_in", "produces")

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.produces = 0
        self.fetches = 0
        self.failed_produces = 0
        self.failed_fetches = 0

    def add(self, other: Traffic) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
