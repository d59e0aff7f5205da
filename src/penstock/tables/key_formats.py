"""Keys as text, in a path or on a command line: UTF-8, base64, numbers as Kafka's serializers write them, windows.

A windowed key is what Kafka Streams writes for a window: the key, then the start of its window in ms as eight bytes;
as text `KEY@START`. A session's is the key, its end and its start; as text `KEY@START-END`.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Protocol

Span = tuple[bytes, bytes | None]
"""keys from the first on, before the second; None: to the end."""


class BadKey(ValueError):
    """A text is no key of its format."""


class KeyFormat(Protocol):
    name: str

    def parse(self, text: str) -> bytes: ...

    def show(self, key: bytes) -> str | None:
        """None where the key is none of this format."""

    def spans(self, start: str | None, end: str | None) -> list[Span]:
        """The ranges of stored keys, one after the other, that lie between two texts in the order of the format."""


class _ByBytes:
    """Formats whose order is the order of the bytes."""

    def parse(self, text: str) -> bytes:
        raise NotImplementedError

    def spans(self, start: str | None, end: str | None) -> list[Span]:
        return [(b"" if start is None else self.parse(start), None if end is None else self.parse(end))]


class Utf8(_ByBytes):
    name = "utf8"

    def parse(self, text: str) -> bytes:
        try:
            return text.encode()
        except UnicodeEncodeError as error:
            raise BadKey(f"{text!r} is no text in UTF-8: {error.reason}") from None

    def show(self, key: bytes) -> str | None:
        try:
            return key.decode()
        except UnicodeDecodeError:
            return None


class Base64(_ByBytes):
    """The alphabet that is safe in a path, with or without its padding."""

    name = "base64"

    def parse(self, text: str) -> bytes:
        bare = text.rstrip("=")
        try:
            decoded = urlsafe_b64decode(bare + "=" * (-len(bare) % 4))
        except ValueError:
            decoded = None
        # The decoder skips what is not of its alphabet.
        if decoded is None or self.show(decoded) != bare:
            raise BadKey(f"{text!r} is no base64 of the alphabet A-Z a-z 0-9 - _")
        return decoded

    def show(self, key: bytes) -> str:
        return urlsafe_b64encode(key).decode().rstrip("=")


class Integer:
    """Two's complement, the highest byte first: negative numbers come behind the others in the order of the bytes."""

    def __init__(self, bits: int) -> None:
        self.name = f"int{bits}"
        self._size = bits // 8
        self._bound = 1 << (bits - 1)

    def parse(self, text: str) -> bytes:
        try:
            number = int(text)
        except ValueError:
            raise BadKey(f"{text!r} is no number") from None
        if not -self._bound <= number < self._bound:
            raise BadKey(f"{text} is not between {-self._bound} and {self._bound - 1}, as an {self.name} is")
        return number.to_bytes(self._size, "big", signed=True)

    def show(self, key: bytes) -> str | None:
        return str(int.from_bytes(key, "big", signed=True)) if len(key) == self._size else None

    def spans(self, start: str | None, end: str | None) -> list[Span]:
        smallest = self.parse(str(-self._bound))
        first = smallest if start is None else self.parse(start)
        last = None if end is None else self.parse(end)
        if first < smallest:
            return [(first, smallest if last is None else last)] if last is None or last < smallest else []
        if last is not None and last >= smallest:
            return [(first, last)]
        return [(first, None), (b"", smallest if last is None else last)]


class Windowed(_ByBytes):
    def __init__(self, inner: KeyFormat) -> None:
        self.name = f"windowed:{inner.name}"
        self._inner = inner

    def parse(self, text: str) -> bytes:
        key, at, start_ms = text.rpartition("@")
        if not at or not _is_time(start_ms):
            raise BadKey(f"{text!r} is no windowed key; write KEY@START, the start of the window in ms")
        return self._inner.parse(key) + int(start_ms).to_bytes(8, "big")

    def show(self, key: bytes) -> str | None:
        start_ms = int.from_bytes(key[-8:], "big", signed=True)
        inner = self._inner.show(key[:-8]) if len(key) >= 8 and start_ms >= 0 else None
        return None if inner is None else f"{inner}@{start_ms}"


class Session(_ByBytes):
    """Two numbers behind the key: a session's end is not known from its start."""

    def __init__(self, inner: KeyFormat) -> None:
        self.name = f"session:{inner.name}"
        self._inner = inner

    def parse(self, text: str) -> bytes:
        key, at, span = text.rpartition("@")
        start_ms, dash, end_ms = span.partition("-")
        if not at or not dash or not _is_time(start_ms) or not _is_time(end_ms):
            raise BadKey(f"{text!r} is no key of a session; write KEY@START-END, its first and last time in ms")
        return self._inner.parse(key) + int(end_ms).to_bytes(8, "big") + int(start_ms).to_bytes(8, "big")

    def show(self, key: bytes) -> str | None:
        end_ms, start_ms = (int.from_bytes(part, "big", signed=True) for part in (key[-16:-8], key[-8:]))
        inner = self._inner.show(key[:-16]) if len(key) >= 16 and start_ms >= 0 and end_ms >= 0 else None
        return None if inner is None else f"{inner}@{start_ms}-{end_ms}"


def _is_time(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) < 1 << 63


BASE64 = Base64()
_PLAIN: dict[str, KeyFormat] = {f.name: f for f in (Utf8(), BASE64, Integer(32), Integer(64))}
KEY_FORMATS: dict[str, KeyFormat] = {
    **_PLAIN,
    **{f"windowed:{name}": Windowed(f) for name, f in _PLAIN.items()},
    **{f"session:{name}": Session(f) for name, f in _PLAIN.items()},
}


def key_format(name: str) -> KeyFormat:
    if name not in KEY_FORMATS:
        raise BadKey(f"there is no key format {name!r}; there are {', '.join(KEY_FORMATS)}")
    return KEY_FORMATS[name]


def shown(form: KeyFormat, key: bytes) -> tuple[str, str]:
    """A key as text, and the format that the text is of: base64 for a key that is none of its format."""
    text = form.show(key)
    return (text, form.name) if text is not None else (BASE64.show(key), BASE64.name)


def prefix_of(form: KeyFormat, text: str) -> bytes:
    """What keys begin with. A windowed key's prefix is a key: it begins all its windows."""
    inner = form.name.rpartition(":")[2]
    if inner.startswith("int"):
        raise BadKey(f"keys of format {form.name} have no prefixes; ask for a range with from and to")
    return KEY_FORMATS[inner].parse(text)
