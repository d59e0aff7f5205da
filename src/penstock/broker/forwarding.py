"""Requests that only the active controller can answer, passed on from the broker that a client happens to ask.

The frame travels as it came, inside an Envelope with who sent it; its answer comes back as it is to be sent.
"""

from __future__ import annotations

import ipaddress

from penstock.base.errors import DecodeError, ErrorCode, KafkaError
from penstock.broker.controller_link import ControllerLink
from penstock.broker.network.session import Peer, Session
from penstock.core.security.principals import Principal
from penstock.protocol.generated.default_principal_data import DefaultPrincipalData
from penstock.protocol.generated.envelope_request import EnvelopeRequest
from penstock.protocol.generated.envelope_response import EnvelopeResponse

_PRINCIPAL_VERSION = 0
_VERSION_BYTES = 2


async def forward(link: ControllerLink, peer: Peer, frame: bytes, timeout_ms: int) -> bytes:
    """The answer to a client's request, its header included. KafkaError where the controller gave none."""
    principal = DefaultPrincipalData(type=peer.principal.kind, name=peer.principal.name)
    envelope = EnvelopeRequest(
        request_data=frame,
        request_principal=_PRINCIPAL_VERSION.to_bytes(_VERSION_BYTES, "big") + principal.encode(_PRINCIPAL_VERSION),
        client_host_address=_packed(peer.host),
    )
    answer: EnvelopeResponse = await link.ask(envelope, timeout_ms)
    if answer.error_code or answer.response_data is None:
        raise KafkaError(ErrorCode(answer.error_code or ErrorCode.UNKNOWN_SERVER_ERROR))
    return answer.response_data


def opened(session: Session, envelope: EnvelopeRequest) -> Session:
    """A session for the client whose request is in the envelope. DecodeError where it does not say who that is."""
    raw = envelope.request_principal or b""
    if len(raw) < _VERSION_BYTES or int.from_bytes(raw[:_VERSION_BYTES], "big") != _PRINCIPAL_VERSION:
        raise DecodeError("the envelope names its principal in a way that is not known")
    data = DefaultPrincipalData.decode(memoryview(raw)[_VERSION_BYTES:], _PRINCIPAL_VERSION)
    peer = Peer(Principal(data.type, data.name), _text(envelope.client_host_address), 0, session.peer.listener)
    return session.speaking_for(peer)


def _packed(host: str) -> bytes:
    """Hosts that are no addresses (a simulated network) are told by their name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).packed
    except ValueError:
        return host.encode()


def _text(address: bytes) -> str:
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address.decode("utf-8", "replace")
