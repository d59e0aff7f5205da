"""One broker's configuration: Kafka's names, checked once, with typed doors for what the shell needs.

An unknown name is a warning; a value out of bounds, or one that asks for what is not built, refuses the start and says
which and why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.base.configs.broker import BROKER_CONFIGS, without_listener
from penstock.base.configs.broker_logs import EVERY_DIRECTORY
from penstock.base.configs.define import ConfigDef
from penstock.base.configs.own import OWN_CONFIGS
from penstock.base.configs.values import Value, parse, split_list

ADMIN_LISTENER = "penstock.admin.listener"
"""HOST:PORT of /metrics and /health; empty: none"""
_PLAINTEXT = "PLAINTEXT"
_ANY_HOST = ("", "0.0.0.0", "::")


class ConfigFault(Exception):
    """The configuration cannot be run. Its text names the key, the cause and what to do."""


class Listener(NamedTuple):
    name: str
    host: str
    """empty: every address"""
    port: int


class BrokerConfig:
    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = dict(values)
        """what was set, as text"""
        self.unknown = sorted(name for name in values if _entry(name) is None)
        self._typed: dict[str, Value] = {}
        for name, text in values.items():
            entry = _entry(name)
            if entry is not None:
                try:
                    self._typed[name] = parse(entry, text)
                except ValueError as fault:
                    raise ConfigFault(str(fault)) from None
        self._check_roles()
        self.node_id = self._node_id()
        self.listeners = self._listeners("listeners")
        self.controller_listener_names = self._list("controller.listener.names")
        self.client_listeners = [one for one in self.listeners if one.name not in self.controller_listener_names]
        self.controller_listeners = [one for one in self.listeners if one.name in self.controller_listener_names]
        self._check_security()
        self._check_cordons()
        self.auto_create_topics = self.flag("auto.create.topics.enable")

    def value(self, name: str) -> Value:
        if name in self._typed:
            return self._typed[name]
        entry = _entry(name)
        assert entry is not None, name
        return parse(entry, entry.default)

    def number(self, name: str) -> int:
        value = self.value(name)
        assert isinstance(value, int), name
        return value

    def flag(self, name: str) -> bool:
        value = self.value(name)
        assert isinstance(value, bool), name
        return value

    def texts(self, name: str) -> list[str]:
        return self._list(name)

    def text(self, name: str) -> str:
        value = self.value(name)
        assert value is None or isinstance(value, str), name
        return value or ""

    @property
    def log_dir(self) -> str:
        dirs = self._list("log.dirs") or self._list("log.dir")
        if len(dirs) != 1:
            raise ConfigFault(f"log.dirs: {len(dirs)} directories are named; a broker here keeps its data in one")
        if self.text("metadata.log.dir") not in ("", dirs[0]):
            raise ConfigFault("metadata.log.dir: the metadata log is kept with the data; leave it out, or set log.dirs")
        return dirs[0]

    @property
    def admin_listener(self) -> Listener | None:
        text = self.values.get(ADMIN_LISTENER, "")
        if not text:
            return None
        host, _, port = text.rpartition(":")
        if not port.isdigit():
            raise ConfigFault(f"{ADMIN_LISTENER}: {text!r} is not HOST:PORT")
        return Listener("ADMIN", host, int(port))

    def advertised(self, bound: Mapping[str, int]) -> list[Listener]:
        """What clients are told, given the port each listener got."""
        return self._advertised(self.client_listeners, bound)

    def advertised_controllers(self, bound: Mapping[str, int]) -> list[Listener]:
        """What the other nodes of the quorum are told."""
        return self._advertised(self.controller_listeners, bound)

    def _advertised(self, listeners: list[Listener], bound: Mapping[str, int]) -> list[Listener]:
        told = {one.name: one for one in self._listeners("advertised.listeners")}
        out = []
        for one in listeners:
            told_one = told.get(one.name, one)
            host = "localhost" if told_one.host in _ANY_HOST else told_one.host
            out.append(Listener(one.name, host, told_one.port or bound[one.name]))
        return out

    @property
    def inter_broker_listener(self) -> str:
        """The name of the listener by which other brokers fetch from this one, and it from them."""
        named = self.text("inter.broker.listener.name") or self.text("security.inter.broker.protocol")
        names = [one.name for one in self.client_listeners]
        if named.upper() in names:
            return named.upper()
        if self.text("inter.broker.listener.name"):
            raise ConfigFault(f"inter.broker.listener.name: {named} is none of the listeners {','.join(names)}")
        return names[0] if names else named.upper()

    def _list(self, name: str) -> list[str]:
        value = self.value(name)
        if isinstance(value, str):
            return [value] if value else []
        assert value is None or isinstance(value, list), name
        return value or []

    def _check_roles(self) -> None:
        roles = self._list("process.roles")
        if not roles or not set(roles) <= {"broker", "controller"}:
            raise ConfigFault(
                f"process.roles: {','.join(roles) or 'nothing'} is set; a node is a broker, a controller or both: "
                "set process.roles=broker,controller"
            )
        self.is_broker, self.is_controller = "broker" in roles, "controller" in roles

    def _node_id(self) -> int:
        node_id = self.number("node.id")
        if node_id < 0:
            raise ConfigFault("node.id: it is not set; every node needs a number of its own, such as node.id=1")
        return node_id

    def _listeners(self, name: str) -> list[Listener]:
        return [_listener(name, text) for text in self._list(name)]

    def _check_cordons(self) -> None:
        for path in self._list("cordoned.log.dirs") if self.is_broker else ():
            if path not in (EVERY_DIRECTORY, self.log_dir):
                raise ConfigFault(
                    f"cordoned.log.dirs: {path} is not the directory of this broker, {self.log_dir}; '*' names it"
                )

    def _check_security(self) -> None:
        if self.text("authorizer.class.name"):
            raise ConfigFault(
                "authorizer.class.name: ACLs are not built so far and everything would be allowed; unset it"
            )
        if self.is_broker and not self.client_listeners:
            raise ConfigFault("listeners: none of them is for clients; add one, such as PLAINTEXT://localhost:9092")
        if not self.is_broker and self.client_listeners:
            raise ConfigFault(
                f"listeners: {self.client_listeners[0].name} is for clients, but process.roles says that this node is "
                "no broker; leave it out"
            )
        if self.is_controller and not self.controller_listeners:
            raise ConfigFault(
                f"listeners: none of them is the controller's; add {','.join(self.controller_listener_names)} to them"
            )
        protocols = dict(
            pair.split(":", 1) for pair in split_list(self.text("listener.security.protocol.map")) if ":" in pair
        )
        for one in self.listeners:
            protocol = protocols.get(one.name, _PLAINTEXT if one.name in self.controller_listener_names else one.name)
            if protocol != _PLAINTEXT:
                raise ConfigFault(f"listeners: {one.name} asks for {protocol}; only PLAINTEXT is built so far")


def _entry(name: str) -> ConfigDef | None:
    return OWN_CONFIGS.get(name) or BROKER_CONFIGS.get(without_listener(name))


def _listener(name: str, text: str) -> Listener:
    label, separator, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    if not separator or not colon or not port.isdigit() or int(port) > 65_535:
        raise ConfigFault(f"{name}: {text!r} is not NAME://HOST:PORT")
    return Listener(label.upper(), host.strip("[]"), int(port))
