"""What can be wrong with a schema, and with a value."""

from __future__ import annotations


class SchemaError(ValueError):
    """A schema that cannot be read, or that names what is not supported."""


class Undecodable(ValueError):
    """Bytes that are not what their schema says, or a value that its schema has no bytes for."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __reduce__(self) -> tuple[type[Undecodable], tuple[str]]:
        return (Undecodable, (self.reason,))
