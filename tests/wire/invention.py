"""Messages made up by chance: a reader that invents what it is asked for, so that a generated class reads itself one.

What comes out fits its version exactly: fields that the version lacks have their defaults, and null occurs only where
it may.
"""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Iterator
from typing import Any

from penstock.protocol import registry
from penstock.protocol.codec import Reader
from penstock.protocol.generated import index
from penstock.protocol.message import Message

LETTERS = "abcxyz0189._-äß世界🙂"
LIMITS = {"b": 7, "h": 15, "i": 31, "q": 63}
TAME = {"b": (0, 127), "h": (0, 100), "H": (0, 65_535), "i": (0, 2**31 - 1), "I": (0, 2**32 - 1), "q": (0, 4 * 10**12)}


class Inventor(Reader):
    """`tame` keeps numbers where every meaning of them is legal: an int16 is an error code, an int64 a time."""

    __slots__ = ("chance", "tame")

    def __init__(self, chance: random.Random, tame: bool = False) -> None:
        super().__init__(b"")
        self.chance = chance
        self.tame = tame

    def unpack(self, form: struct.Struct) -> tuple[Any, ...]:
        return tuple(self.value(code) for code in re.findall(r"16s|[a-zA-Z?]", form.format))

    def value(self, code: str) -> Any:
        if code == "16s":
            return self.chance.randbytes(16)
        if code == "?":
            return self.chance.random() < 0.5
        if code == "d":
            return self.chance.choice([0.0, -1.5, 1e300, self.chance.random()])
        if self.tame or code in "HI":
            return self.chance.randint(*TAME[code])
        bits = self.chance.choice([0, 3, LIMITS[code]])
        return self.chance.randint(-(2**bits), 2**bits - 1)

    def take(self, size: int) -> memoryview:
        return memoryview(self.chance.randbytes(size))

    def string(self, flexible: bool) -> str:
        return "".join(self.chance.choices(LETTERS, k=self.chance.choice([0, 1, 5, 12, 127])))

    def nullable_string(self, flexible: bool) -> str | None:
        return None if self.chance.random() < 0.3 else self.string(flexible)

    def records(self, flexible: bool) -> memoryview:
        return self.take(self.chance.choice([0, 1, 61, 200]))

    def nullable_records(self, flexible: bool) -> memoryview | None:
        return None if self.chance.random() < 0.3 else self.records(flexible)

    def count(self, flexible: bool, minimal: int, nullable: bool = False) -> int:
        return self.chance.choice([0, 1, 2, -1] if nullable else [0, 1, 1, 2])

    def _ints(self, count: int, code: str, size: int) -> list[int]:
        return [self.value(code) for _ in range(count)]

    def present(self) -> bool:
        return self.chance.random() < 0.7

    def uvarint(self) -> int:
        """A message asks for one only to know whether a structure follows."""
        return int(self.present())

    def tags(self) -> Iterator[int]:
        yield from (tag for tag in range(12) if self.chance.random() < 0.6)

    def skip_tag(self) -> None:
        pass

    def skip_tags(self) -> None:
        pass


def invent(cls: type[Message], version: int, seed: int, tame: bool = False) -> Message:
    return cls.read(Inventor(random.Random(f"{cls.__name__} {version} {seed}"), tame), version)


def versions(cls: type[Message]) -> range:
    return range(cls.MIN_VERSION, cls.MAX_VERSION + 1)


def requests_and_responses() -> list[type[Message]]:
    return [side(key) for key in registry.APIS for side in (registry.request_class, registry.response_class)]


def log_records() -> list[type[Message]]:
    """Metadata and coordinator records, keys and values."""
    single = [*index.METADATA_RECORDS.values(), *index.REMOTE_LOG_RECORDS.values()]
    tables = (index.GROUP_RECORDS, index.TRANSACTION_RECORDS, index.SHARE_RECORDS)
    pairs = [name for table in tables for pair in table.values() for name in pair]
    return [registry.message_class(name) for name in single + pairs]


def other_data() -> list[type[Message]]:
    return [registry.message_class(name) for name in index.DATA]


def all_messages() -> list[type[Message]]:
    return requests_and_responses() + log_records() + other_data()
