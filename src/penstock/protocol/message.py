"""What every generated message can do: compare, print, decode a body, encode one, and say where bad bytes were."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any, ClassVar, Self, TypeVar

from penstock.base.errors import DecodeError, ErrorCode, KafkaError
from penstock.base.limits import MESSAGE_ELEMENTS_MAX
from penstock.base.ports import Buffer
from penstock.protocol.codec import Reader, write_count

UNSET: Any = object()
"""The default of an argument whose real default is a fresh list or structure."""
ZERO_ID = bytes(16)
NEVER_FLEXIBLE = 32_767


class Structure:
    """A part of a message, or a whole one. Its slots are its fields, in the order of the specification."""

    __slots__: tuple[str, ...] = ()

    @classmethod
    def read(cls, reader: Reader, version: int) -> Self:
        raise NotImplementedError

    def write(self, out: bytearray, version: int) -> None:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # a message is a mutable value

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"


class Message(Structure):
    """A request's, a response's or a record's body, in all its versions."""

    __slots__ = ()
    API_KEY: ClassVar[int]
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FLEXIBLE_FROM: ClassVar[int]

    @classmethod
    def decode(cls, data: Buffer, version: int, elements_max: int = MESSAGE_ELEMENTS_MAX) -> Self:
        """The message at the start of `data`; what follows it is ignored."""
        cls.check_version(version)
        try:
            return cls.read(Reader(data, 0, elements_max), version)
        except DecodeError as error:
            refusal = f"{failing_field(error.__traceback__) or cls.__name__} (version {version}): {error}"
        # outside the handler, so that the new error does not keep the old one's stack, and with it the frame's bytes
        raise DecodeError(refusal)

    def encode(self, version: int) -> bytearray:
        self.check_version(version)
        out = bytearray()
        self.write(out, version)
        return out

    @classmethod
    def check_version(cls, version: int) -> None:
        if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
            known = f"{cls.MIN_VERSION} to {cls.MAX_VERSION}"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{cls.__name__} has versions {known}, not {version}")


S = TypeVar("S", bound=Structure)


def read_structures(cls: type[S], reader: Reader, version: int, flexible: bool, minimal: int) -> list[S]:
    """An array whose elements take at least `minimal` bytes each."""
    items: list[S] = []
    for _ in range(reader.count(flexible, minimal)):
        items.append(cls.read(reader, version))
    return items


def read_nullable_structures(
    cls: type[S], reader: Reader, version: int, flexible: bool, minimal: int, nullable: bool = True
) -> list[S] | None:
    items: list[S] = []
    count = reader.count(flexible, minimal, nullable)
    for _ in range(count):
        items.append(cls.read(reader, version))
    return None if count < 0 else items


def write_structures(out: bytearray, items: Sequence[Structure], version: int, flexible: bool) -> None:
    write_count(out, len(items), flexible)
    for item in items:
        item.write(out, version)


def not_in_version(structure: Structure, field: str, version: int) -> KafkaError:
    """A value that would be lost: the field has one, this version has no such field, and it may not be ignored."""
    name = type(structure).__name__
    return KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{name}.{field} is set but version {version} has no such field")


def null_in_version(structure: Structure, field: str, version: int) -> KafkaError:
    name = type(structure).__name__
    return KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{name}.{field} is null, which version {version} cannot say")


def failing_field(traceback: TracebackType | None) -> str:
    """Where a decoder stopped, as `ProduceRequest.topic_data[0].partition_data[2].index`.

    Read from the stack of the exception, so that decoding good bytes pays nothing for it: each structure that was
    being read is a half-filled `self`, and as its fields are filled in the order of the slots, the first empty one is
    the culprit.
    """
    path = ""
    while traceback is not None:
        path += _frame_field(traceback.tb_frame, not path)
        traceback = traceback.tb_next
    return path


def _frame_field(frame: FrameType, first: bool) -> str:
    # The locals of other frames are left alone: looking at them would tie the exception, one of them, to its own frame.
    name = frame.f_code.co_name
    if name in ("read_structures", "read_nullable_structures") and "_" in frame.f_locals:
        return f"[{len(frame.f_locals['items'])}]"
    if name != "read":
        return ""
    structure = frame.f_locals.get("self")
    if not isinstance(structure, Structure):
        return ""
    empty = next((slot for slot in structure.__slots__ if not hasattr(structure, slot)), "tagged fields")
    return f"{type(structure).__name__}.{empty}" if first else f".{empty}"
