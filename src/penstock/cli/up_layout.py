"""Where `penstock up` keeps things: DIR/<node>/ with `server.properties`, `pid` while it runs, and `data`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from penstock.broker.properties import format_properties, parse_properties
from penstock.cli.failures import Failure
from penstock.cli.running import holder

_VOTERS = "controller.quorum.voters"


class Written:
    """Whether the files of a start stay."""

    def __init__(self) -> None:
        self.stays = False

    def keep(self) -> None:
        self.stays = True


class Layout:
    def __init__(self, directory: str) -> None:
        self.directory = directory

    def node(self, node: int, *names: str) -> str:
        return os.path.join(self.directory, str(node), *names)

    def properties_path(self, node: int) -> str:
        return self.node(node, "server.properties")

    def nodes(self) -> list[int]:
        """Those of earlier starts."""
        return [node for node in self._directories() if os.path.exists(self.properties_path(node))]

    def _directories(self) -> list[int]:
        if not os.path.isdir(self.directory):
            return []
        return sorted(int(name) for name in os.listdir(self.directory) if name.isdigit())

    def earlier(self, node: int) -> dict[str, str]:
        """What the file of an earlier start says."""
        return parse_properties(self._text(node) or "")

    def voters(self) -> list[int]:
        """Who votes since the first start: none before it. Later nodes are brokers alone, for a list of voters that
        changes while nobody runs could forget what the old majority knew.
        """
        for node in self.nodes():
            texts = self.earlier(node).get(_VOTERS, "").split(",")
            try:
                return [int(text.partition("@")[0]) for text in texts if text]
            except ValueError:
                raise Failure(
                    f"{self.properties_path(node)}: {_VOTERS} is not a list of ID@HOST:PORT", "correct it there"
                ) from None
        return []

    def cluster_id(self, nodes: int) -> str | None:
        """That of data that is there, of the first node's above all; else what its file says. Before the first start a
        new one for several nodes, and None for one, which makes its own."""
        for node in [1, *self._directories()]:
            with suppress(FileNotFoundError, KeyError), open(self.node(node, "data", "meta.properties")) as file:
                return parse_properties(file.read())["cluster.id"]
        known = self.earlier(1).get("penstock.cluster.id")
        return known or (_new_id() if nodes > 1 else None)

    @contextmanager
    def written(self, values: dict[int, dict[str, str]]) -> Iterator[Written]:
        """The nodes' files for a start. Where nobody got ready by it, they are again what they were before: a mistake
        in one start does not stay for the next."""
        written = Written()
        before = {node: self._text(node) for node in values}
        try:
            for node in values:
                self._write(node, format_properties(values[node]))
            yield written
        finally:
            if not written.stays:
                for node, text in before.items():
                    self._write(node, text)

    def _text(self, node: int) -> str | None:
        try:
            with open(self.properties_path(node)) as file:
                return file.read()
        except FileNotFoundError:
            return None

    def _write(self, node: int, text: str | None) -> None:
        if text is None:
            with suppress(FileNotFoundError):
                os.unlink(self.properties_path(node))
            return
        os.makedirs(self.node(node), exist_ok=True)
        with open(self.properties_path(node), "w") as file:
            file.write(text)

    def refuse_running(self, nodes: list[int]) -> None:
        """Before anything is written: a node that runs has read its file, and tools read it too."""
        for node in nodes:
            running = holder(self.node(node, "pid"))
            if running is not None:
                raise Failure(
                    f"a broker runs on {self.node(node)} already (process {running})",
                    "stop it, or choose another directory with --data",
                )


def _new_id() -> str:
    from penstock.base.ids import id_text, random_id
    from penstock.broker.system import SystemRandom

    return id_text(random_id(SystemRandom()))
