"""The type of JSON values, told from a sample of them. Pure.

| in the sample | column |
|---|---|
| true, false; whole numbers; numbers | BOOLEAN; BIGINT; DOUBLE |
| texts, only nulls, only empty arrays | VARCHAR, VARCHAR, a list of VARCHAR |
| objects; arrays | a struct of all members seen; a list of what is in them |
| several of these in one place, objects without members | VARCHAR: the JSON text |

Members come in the order in which they were first seen. Of those whose names differ in case alone, inside of an object,
the first one is kept: neither engine can tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pyarrow as pa

from penstock.schemas.json_schema import RAW

MEMBERS_MAX = 1_000
"""of one object; beyond that its members are data, not columns"""
DEPTH_MAX = 16
INT64 = range(-(2**63), 2**63)

_decode = msgspec.json.Decoder().decode


def json_objects(samples: Iterable[bytes]) -> list[dict[str, Any]] | None:
    """The samples as objects; None where one is something else."""
    found: list[dict[str, Any]] = []
    for sample in samples:
        try:
            value = _decode(sample)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        if not isinstance(value, dict):
            return None
        found.append(value)
    return found


def object_type(objects: Iterable[dict[str, Any]]) -> pa.DataType:
    """The struct that has a place for all members of all objects."""
    shape = _Shape()
    for one in objects:
        shape.see(one)
    return pa.struct(shape.members_as_fields(unify_case=False))


class _Shape:
    """What was seen in one place."""

    def __init__(self, depth: int = 0) -> None:
        self.depth = depth
        self.kinds: set[str] = set()
        self.members: dict[str, _Shape] = {}
        self.item: _Shape | None = None

    def see(self, value: Any) -> None:
        match value:
            case None:
                return
            case bool():
                self.kinds.add("bool")
            case int():
                self.kinds.add("int" if value in INT64 else "float")
            case float():
                self.kinds.add("float")
            case str():
                self.kinds.add("text")
            case dict():
                self.kinds.add("object")
                self._see_members(value)
            case list():
                self.kinds.add("array")
                self.item = self.item or _Shape(self.depth + 1)
                for one in value:
                    self.item.see(one)

    def _see_members(self, value: dict[str, Any]) -> None:
        for name, one in value.items():
            if name not in self.members and len(self.members) > MEMBERS_MAX:
                continue
            self.members.setdefault(name, _Shape(self.depth + 1)).see(one)

    def field(self, name: str) -> pa.Field:
        kind = self._type()
        return pa.field(name, pa.string(), metadata=RAW) if kind is None else pa.field(name, kind)

    def _type(self) -> pa.DataType | None:
        """None: kept as JSON."""
        if self.kinds == {"int", "float"}:
            return pa.float64()
        if len(self.kinds) > 1 or self.depth > DEPTH_MAX:
            return None
        (kind,) = self.kinds or {"text"}
        if kind == "array":
            assert self.item is not None
            return pa.list_(self.item.field("item"))
        if kind == "object":
            return pa.struct(self.members_as_fields()) if 0 < len(self.members) <= MEMBERS_MAX else None
        return {"bool": pa.bool_(), "int": pa.int64(), "float": pa.float64(), "text": pa.string()}[kind]

    def members_as_fields(self, unify_case: bool = True) -> list[pa.Field]:
        by_case = {name.lower(): name for name in reversed(self.members)}
        kept = [name for name in self.members if not unify_case or by_case[name.lower()] == name]
        return [self.members[name].field(name) for name in kept]
