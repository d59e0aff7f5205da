"""What the configuration says of the quorum."""

from __future__ import annotations

from penstock.base.ids import NO_ID, id_from_text
from penstock.broker.config import BrokerConfig, ConfigFault
from penstock.core.raft.settings import Settings
from penstock.core.raft.voters import Voter, VoterEndpoint, Voters

INITIAL_CONTROLLERS = "penstock.initial.controllers"
_VOTERS = ("controller.quorum.voters", INITIAL_CONTROLLERS)


def controller_endpoints(config: BrokerConfig) -> tuple[VoterEndpoint, ...]:
    """Where this node's controller listens, as configured."""
    return tuple(
        VoterEndpoint(one.name, one.host or "localhost", one.port)
        for one in config.listeners
        if one.name in config.controller_listener_names
    )


def names_others(config: BrokerConfig, endpoints: tuple[VoterEndpoint, ...]) -> bool:
    """Whether other nodes keep the metadata too, as far as the configuration tells. `endpoints`: this node's own."""
    if not config.is_controller:
        return True
    ids = [text.partition("@")[0] for name in _VOTERS for text in config.texts(name)]
    own = [f"{one.host}:{one.port}" for one in endpoints]
    servers = config.texts("controller.quorum.bootstrap.servers")
    return any(one != str(config.node_id) for one in ids) or any(one not in own for one in servers)


def configured_voters(config: BrokerConfig, me: Voter) -> Voters:
    """`controller.quorum.voters`, each written as id@host:port; this node alone where no others are named at all. One
    that knows of others and not who votes must not take itself for the only voter: there would be two clusters."""
    texts = config.texts("controller.quorum.voters")
    voters = tuple(_voter(text, config) for text in texts)
    if not voters:
        return () if names_others(config, me.endpoints) else (me._replace(directory_id=NO_ID),)
    return tuple(me._replace(directory_id=NO_ID) if one.id == me.id else one for one in voters)


def initial_controllers(config: BrokerConfig) -> Voters:
    """`penstock.initial.controllers`, each written as id@host:port:directory-id, as kafka-storage takes them."""
    voters = []
    for text in config.texts(INITIAL_CONTROLLERS):
        place, _, directory = text.rpartition(":")
        try:
            voters.append(_voter(place, config, INITIAL_CONTROLLERS)._replace(directory_id=id_from_text(directory)))
        except ValueError:
            raise ConfigFault(f"{INITIAL_CONTROLLERS}: {text!r} is not ID@HOST:PORT:DIRECTORY-ID") from None
    return tuple(voters)


def quorum_settings(config: BrokerConfig) -> Settings:
    number = config.number
    return Settings(
        election_timeout_ms=number("controller.quorum.election.timeout.ms"),
        election_backoff_max_ms=number("controller.quorum.election.backoff.max.ms"),
        fetch_timeout_ms=number("controller.quorum.fetch.timeout.ms"),
        request_timeout_ms=number("controller.quorum.request.timeout.ms"),
        retry_backoff_ms=number("controller.quorum.retry.backoff.ms"),
        fetch_max_bytes=number("controller.quorum.fetch.max.bytes"),
        snapshot_max_bytes=number("controller.quorum.fetch.snapshot.max.bytes"),
        eager=config.flag("penstock.quorum.eager.elections"),
        auto_join=config.flag("controller.quorum.auto.join.enable") and config.is_controller,
    )


def _voter(text: str, config: BrokerConfig, named: str = "controller.quorum.voters") -> Voter:
    number, at, address = text.partition("@")
    host, colon, port = address.rpartition(":")
    if not at or not colon or not number.isdigit() or not port.isdigit():
        raise ConfigFault(f"{named}: {text!r} is not ID@HOST:PORT")
    listener = (config.controller_listener_names or ["CONTROLLER"])[0]
    return Voter(int(number), NO_ID, (VoterEndpoint(listener, host.strip("[]"), int(port)),))
