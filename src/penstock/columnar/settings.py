"""What a reader or writer of topics is told by Kafka's own configuration names, with or without Spark's `kafka.`."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.columnar.buffers import uninitialized
from penstock.wire import security
from penstock.wire.blocking import Client

PREFIX = "kafka."


class Options:
    """Configurations as texts; a value that cannot be read is an error that names it. Unknown names are left alone, as
    Kafka's clients do: one set of options may serve several of them."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._values = {name.removeprefix(PREFIX): str(value) for name, value in config.items()}
        self._security = security.parse(self._values, PREFIX)

    def text(self, name: str, default: str) -> str:
        return self._values.get(name, default)

    def number(self, name: str, default: int) -> int:
        text = self._values.get(name)
        if text is None:
            return default
        try:
            return int(text)
        except ValueError:
            raise ValueError(f"{PREFIX}{name} is a whole number, not {text!r}") from None

    def flag(self, name: str, default: bool) -> bool:
        text = self._values.get(name, str(default)).lower()
        if text not in ("true", "false"):
            raise ValueError(f"{PREFIX}{name} is true or false, not {text!r}")
        return text == "true"

    def client(self, bootstrap: str) -> Client:
        return Client(
            bootstrap,
            client_id=self.text("client.id", "penstock"),
            security=self._security,
            allocate=uninitialized,
        )
