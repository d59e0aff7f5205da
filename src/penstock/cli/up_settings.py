"""What the nodes of `penstock up` are configured with, and what is refused before anything is written."""

from __future__ import annotations

import re

from penstock.broker.nodes import VOTERS_MAX, Ports, copies, free_ports, node_settings
from penstock.cli.failures import Failure, Usage
from penstock.cli.options import pairs
from penstock.cli.up_layout import Layout

PORT_STEP = 10
"""from one node's ports to the next one's"""
PORT_MAX = 65_535
_ADMIN_STEP = 2
"""from a node's port for clients to the one of /metrics and /health; the controller's is between"""
_NAMES = re.compile(r"[a-z0-9][a-z0-9.-]*[a-z0-9]")
"""what may be a configuration's, in a text"""
_NUMBER = "a node's number is the name of its directory"
_ROLES = "which nodes are controllers, and where they listen, follows from the number of nodes at the first start"
_PLACE = "data is kept in DIR/<node>/data, where the next start looks for it; --data names DIR"
_ADDRESS = "every node has addresses of its own, which follow from --host and --port"
_NEVER_SET = {
    "node.id": _NUMBER,
    "broker.id": _NUMBER,
    "process.roles": _ROLES,
    "controller.listener.names": _ROLES,
    "controller.quorum.voters": _ROLES,
    "controller.quorum.bootstrap.servers": _ROLES,
    "penstock.initial.controllers": _ROLES,
    "log.dirs": _PLACE,
    "log.dir": _PLACE,
    "metadata.log.dir": _PLACE,
}
_SET_FOR_ONE_ALONE = {
    "listeners": _ADDRESS,
    "advertised.listeners": _ADDRESS,
    "penstock.admin.listener": _ADDRESS,
}


def asked(texts: list[str]) -> dict[str, str]:
    """Those of --set. Of a topic's name, which a broker would ignore, the broker's is told."""
    from penstock.base.configs.broker import BROKER_CONFIGS
    from penstock.base.configs.topic import TOPIC_CONFIGS

    settings = pairs(texts, "the configuration")
    for name, value in settings.items():
        if name in BROKER_CONFIGS or name not in TOPIC_CONFIGS:
            continue
        synonyms = TOPIC_CONFIGS[name].synonyms
        raise Usage(
            f"--set {name}={value}: this is a configuration of topics, not of brokers",
            f"--set {synonyms[0].name} is what topics have that set none"
            if synonyms
            else f"`penstock topic alter TOPIC --set {name}=...` sets it for one",
        )
    return settings


def refuse_own(settings: dict[str, str], nodes: int, directory: str | None) -> None:
    """What `up` decides by itself, and what cannot be the same for several nodes. `directory`: where an earlier start
    has left files, if one has."""
    refused = _NEVER_SET | (_SET_FOR_ONE_ALONE if nodes > 1 else {})
    files = "write a file for each node" if directory is None else f"edit {directory}/<node>/server.properties"
    for name, value in settings.items():
        if name in refused:
            raise Usage(
                f"--set {name}={value}: {refused[name]}",
                f"to have it otherwise, {files} and start each node by `penstock broker --config FILE`",
            )


def refuse_port(port: int, nodes: int) -> None:
    if not 0 <= port <= PORT_MAX:
        raise Usage(f"--port {port}: ports are 0 to {PORT_MAX}, and 0 takes free ones")
    last = port + PORT_STEP * (nodes - 1) + _ADMIN_STEP
    if port and last > PORT_MAX:
        whose = f"{nodes} nodes take" if nodes > 1 else "a node takes"
        most = PORT_MAX - (last - port)
        raise Usage(
            f"--port {port}: {whose} ports from there up to {last}, and the highest is {PORT_MAX}",
            f"choose 1 to {most}, or 0 for free ones" if most > 0 else "start fewer, or choose 0 for free ones",
        )


def configurations(
    layout: Layout, nodes: list[int], port: int, host: str, settings: dict[str, str]
) -> dict[int, dict[str, str]]:
    """By node. Ours, then what the file of an earlier start says, then the addresses of this one, then --set."""
    ports = dict(zip(nodes, _ports(port, host, len(nodes)), strict=True))
    voters = layout.voters() or nodes[:VOTERS_MAX]
    addresses = node_settings(ports, voters, host, layout.cluster_id(len(nodes)))
    found = {}
    for node in nodes:
        admin_port = ports[node].client + _ADMIN_STEP if port else 0
        found[node] = {
            **copies(len(nodes)),
            "group.initial.rebalance.delay.ms": "0",
            **layout.earlier(node),
            "log.dirs": layout.node(node, "data"),
            **addresses[node],
            "penstock.admin.listener": f"{host or 'localhost'}:{admin_port}",
            **settings,
        }
    return found


def check(layout: Layout, values: dict[int, dict[str, str]]) -> None:
    """As far as a configuration can be judged by itself. What the disk and the network say of it comes later."""
    from penstock.broker.config import BrokerConfig, ConfigFault

    for node in values:
        try:
            config = BrokerConfig(values[node])
            config.advertised({one.name: one.port for one in config.listeners})
            for read_later in ("log_dir", "admin_listener", "inter_broker_listener"):
                getattr(config, read_later)
        except ConfigFault as fault:
            named = _NAMES.findall(str(fault))
            is_from_earlier = any(
                name in named and values[node].get(name) == text for name, text in layout.earlier(node).items()
            )
            raise Failure(
                f"the configuration cannot be run: {fault}",
                f"what earlier starts have set stays in {layout.properties_path(node)}; --set KEY=VALUE replaces it"
                if is_from_earlier
                else None,
            ) from None


def _ports(port: int, host: str, count: int) -> list[Ports]:
    if not port:
        from penstock.broker.system import SystemRandom

        return free_ports(count, SystemRandom(), host)
    firsts = [port + PORT_STEP * place for place in range(count)]
    return [Ports(first, first + 1) for first in firsts]
