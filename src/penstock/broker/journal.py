"""The broker's log lines: an event and its facts as key=value, through the standard library's logging.

Inside another process (`embedded`) lines go where that process sends the logger `penstock`; a broker on its own writes
them to stderr. docs/adr/0003 says why no logging library is used here: it would take longer to import than the broker.
"""

from __future__ import annotations

import logging
import sys
import time


class Journal:
    """A line that nobody wants to read is not even put together."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def info(self, event: str, **facts: object) -> None:
        if self._logger.isEnabledFor(logging.INFO):
            self._logger.info("%s", _line(event, facts))

    def warning(self, event: str, **facts: object) -> None:
        if self._logger.isEnabledFor(logging.WARNING):
            self._logger.warning("%s", _line(event, facts))

    def error(self, event: str, **facts: object) -> None:
        self._logger.error("%s", _line(event, facts))

    def exception(self, event: str, **facts: object) -> None:
        """An error with the traceback of the exception that is being handled."""
        self._logger.exception("%s", _line(event, facts))


def _line(event: str, facts: dict[str, object]) -> str:
    return " ".join([event, *(f"{name}={_shown(value)}" for name, value in facts.items())])


def _shown(value: object) -> str:
    text = str(value)
    plain = text.isprintable() and not any(char.isspace() or char in "\"'=" for char in text)
    return text if text and plain else repr(text)


def write_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    form = logging.Formatter("%(asctime)s.%(msecs)03dZ %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    form.converter = time.gmtime
    handler.setFormatter(form)
    root = logging.getLogger("penstock")
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    root.propagate = False
