"""Where `penstock up` keeps things: DIR/<node>/ with `server.properties`, `pid` while it runs, and `data`."""

from __future__ import annotations

import os

from penstock.broker.properties import format_properties, parse_properties
from penstock.cli.failures import Failure
from penstock.cli.running import holder

_VOTERS = "controller.quorum.voters"


class Layout:
    def __init__(self, directory: str) -> None:
        self.directory = directory

    def node(self, node: int, *names: str) -> str:
        return os.path.join(self.directory, str(node), *names)

    def properties_path(self, node: int) -> str:
        return self.node(node, "server.properties")

    def nodes(self) -> list[int]:
        """Those of earlier starts."""
        if not os.path.isdir(self.directory):
            return []
        named = [int(name) for name in os.listdir(self.directory) if name.isdigit()]
        return sorted(node for node in named if os.path.exists(self.properties_path(node)))

    def earlier(self, node: int) -> dict[str, str]:
        """What the file of an earlier start says."""
        try:
            with open(self.properties_path(node)) as file:
                return parse_properties(file.read())
        except FileNotFoundError:
            return {}

    def voters(self) -> list[int]:
        """Who votes since the first start: none before it. Later nodes are brokers alone, for a list of voters that
        changes while nobody runs could forget what the old majority knew.
        """
        for node in self.nodes():
            texts = self.earlier(node).get(_VOTERS, "").split(",")
            return [int(text.partition("@")[0]) for text in texts if text]
        return []

    def cluster_id(self) -> str:
        """That of the first node's data; a new one before the first start."""
        try:
            with open(self.node(1, "data", "meta.properties")) as file:
                return parse_properties(file.read())["cluster.id"]
        except (FileNotFoundError, KeyError):
            return self.earlier(1).get("penstock.cluster.id") or _new_id()

    def write(self, node: int, values: dict[str, str]) -> None:
        os.makedirs(self.node(node, "data"), exist_ok=True)
        with open(self.properties_path(node), "w") as file:
            file.write(format_properties(values))

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
