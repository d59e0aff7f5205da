"""What a sink refuses, each with the next step."""

from __future__ import annotations


class SinkError(RuntimeError):
    """Rows cannot be written, or not as was asked for."""


class SinkOptionError(ValueError):
    """An option or a column that is missing, unknown, or cannot be followed."""
