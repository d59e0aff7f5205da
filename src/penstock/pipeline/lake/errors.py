"""What can go wrong with a load."""

from __future__ import annotations


class LakeError(Exception):
    """A table cannot be loaded, read or compacted; the text names the table, the cause and the next step."""


class SchemaMismatch(LakeError):
    """The rows of a load do not fit into the table's columns."""


class TableChanged(LakeError):
    """Somebody else has changed the table in the meantime; it stays as they left it."""
