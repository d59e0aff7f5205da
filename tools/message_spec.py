"""Apache Kafka's message specifications as values: read out of the published jars, with every default made explicit."""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import dataclass
from functools import cached_property
from keyword import iskeyword
from pathlib import Path
from typing import Any

JARS = (
    "kafka-clients",
    "kafka-metadata",
    "kafka-raft",
    "kafka-storage",
    "kafka-group-coordinator",
    "kafka-transaction-coordinator",
    "kafka-share-coordinator",
)
# struct codes; a uuid is 16 bytes and a bool one byte that is not zero
FIXED = {"bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q"}
FIXED |= {"float64": "d", "uuid": "16s"}
SIZES = {"?": 1, "b": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "d": 8, "16s": 16}
NEVER = 32_767


@dataclass(frozen=True)
class Versions:
    """An inclusive range; empty where `low` is above `high`."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str | None) -> Versions:
        if text is None or text == "none":
            return cls(0, -1)
        low, _, high = text.rstrip("+").partition("-")
        return cls(int(low), NEVER if text.endswith("+") else int(high or low))

    def __and__(self, other: Versions) -> Versions:
        return Versions(max(self.low, other.low), min(self.high, other.high))

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    def __bool__(self) -> bool:
        return self.low <= self.high

    def numbers(self) -> range:
        return range(self.low, self.high + 1)


@dataclass(frozen=True)
class Field:
    name: str
    kind: str
    """a primitive's name or a struct's name; of the elements where `is_array`"""
    is_array: bool
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int
    ignorable: bool
    never_flexible: bool
    default: str
    """as the specification writes it: "" means the type's own default"""

    @property
    def code(self) -> str | None:
        """The struct code of a fixed-width field."""
        return None if self.is_array else FIXED.get(self.kind)

    @property
    def is_struct(self) -> bool:
        return self.kind[0].isupper()

    @cached_property
    def attribute(self) -> str:
        name = snake(self.name)
        return name + "_" if iskeyword(name) else name


@dataclass(frozen=True)
class Struct:
    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Message:
    name: str
    kind: str
    """request, response, header, data, metadata, coordinator-key or coordinator-value"""
    key: int
    versions: Versions
    flexible: Versions
    listeners: tuple[str, ...]
    latest_unstable: bool
    structs: tuple[Struct, ...]
    """inner ones first, the message itself last"""
    jar: str

    @property
    def module(self) -> str:
        return snake(self.name)

    @property
    def flexible_from(self) -> int:
        return self.flexible.low if self.flexible else NEVER


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def without_comments(text: str) -> str:
    """JSON as the jars hold it has // comments; a string may hold the same two characters."""
    return re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*', lambda found: found[1] or "", text)


def read_jars(directory: Path) -> list[Message]:
    """Every message of the jars that has a valid version, sorted by name."""
    messages = [message for jar in JARS for message in read_jar(find_jar(directory, jar), jar)]
    return sorted(messages, key=lambda message: message.name)


def find_jar(directory: Path, jar: str) -> Path:
    found = sorted(path for path in directory.glob(f"{jar}-*.jar") if re.fullmatch(rf"{jar}-[\d.]+\.jar", path.name))
    if len(found) != 1:
        raise SystemExit(f"{directory} must hold exactly one {jar}-VERSION.jar, it holds {len(found)}; needed: {JARS}")
    return found[0]


def read_jar(path: Path, jar: str) -> list[Message]:
    with zipfile.ZipFile(path) as archive:
        names = [n for n in archive.namelist() if re.search(r"(^|/)(message|metadata)/[^/]+\.json$", n)]
        specs = [json.loads(without_comments(archive.read(name).decode())) for name in names]
    return [parse_message(spec, jar) for spec in specs if spec["validVersions"] != "none"]


def parse_message(spec: dict[str, Any], jar: str) -> Message:
    structs: list[Struct] = []
    for common in spec.get("commonStructs", []):
        collect_structs(common["name"], common["fields"], structs)
    collect_structs(spec["name"], spec["fields"], structs)
    return Message(
        name=spec["name"],
        kind=spec["type"],
        key=spec.get("apiKey", -1),
        versions=Versions.parse(spec["validVersions"]),
        flexible=Versions.parse(spec.get("flexibleVersions")),
        listeners=tuple(spec.get("listeners", ())),
        latest_unstable=spec.get("latestVersionUnstable", False),
        structs=tuple(structs),
        jar=jar,
    )


def collect_structs(name: str, fields: list[dict[str, Any]], structs: list[Struct]) -> None:
    for field in fields:
        if "fields" in field:
            collect_structs(field["type"].removeprefix("[]"), field["fields"], structs)
    assert name not in {struct.name for struct in structs}, f"two structs are called {name}"
    structs.append(Struct(name, tuple(parse_field(field) for field in fields)))


def parse_field(spec: dict[str, Any]) -> Field:
    default = spec.get("default")
    return Field(
        name=spec["name"],
        kind=spec["type"].removeprefix("[]"),
        is_array=spec["type"].startswith("[]"),
        versions=Versions.parse(spec.get("versions", spec.get("taggedVersions"))),
        nullable=Versions.parse(spec.get("nullableVersions")),
        tagged=Versions.parse(spec.get("taggedVersions")),
        tag=spec.get("tag", -1),
        ignorable=spec.get("ignorable", False),
        never_flexible=spec.get("flexibleVersions") == "none",
        # a JSON null is the absence of a default, the text "null" is a null value: Kafka's generator reads it so
        default="" if default is None else str(default).lower() if isinstance(default, bool) else str(default),
    )
