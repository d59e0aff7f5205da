"""Counters: of one topic's traffic on this broker, which its partitions share, and of what is done for all copies."""

from __future__ import annotations


class Traffic:
    __slots__ = (
        "bytes_in",
        "bytes_out",
        "failed_fetches",
        "failed_produces",
        "failed_share_acknowledges",
        "failed_share_fetches",
        "fetches",
        "messages_in",
        "produces",
        "share_acknowledges",
        "share_fetches",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.produces = 0
        self.fetches = 0
        self.share_fetches = 0
        self.share_acknowledges = 0
        self.failed_produces = 0
        self.failed_fetches = 0
        self.failed_share_fetches = 0
        self.failed_share_acknowledges = 0

    def add(self, other: Traffic) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Upkeep:
    """What keeps copies whole and in sync, since the broker started."""

    __slots__ = (
        "copied_bytes",
        "damages",
        "failed_repairs",
        "isr_expands",
        "isr_failures",
        "isr_shrinks",
        "repairs",
        "scrubbed_bytes",
    )

    def __init__(self) -> None:
        self.copied_bytes = 0
        """that followers here got from their leaders"""
        self.isr_expands = 0
        self.isr_shrinks = 0
        self.isr_failures = 0
        self.scrubbed_bytes = 0
        """of segments, read again and found sound"""
        self.damages = 0
        """places at which they were not"""
        self.repairs = 0
        """stretches of damaged copies that have their records again"""
        self.failed_repairs = 0
        """times that nobody had what was missing"""
