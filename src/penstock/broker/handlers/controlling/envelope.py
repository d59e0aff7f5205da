"""Envelope 0: a client's request that a broker passes on, with the principal and the host it came from (KIP-590)."""

from __future__ import annotations

from penstock.base.errors import DecodeError, ErrorCode, KafkaError
from penstock.base.limits import REQUEST_ELEMENTS_MAX
from penstock.broker.forwarding import opened
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader, decode_request_header, encode_response_header
from penstock.protocol.generated.envelope_request import EnvelopeRequest
from penstock.protocol.generated.envelope_response import EnvelopeResponse


async def handle(session: Session, header: RequestHeader, request: EnvelopeRequest) -> EnvelopeResponse:
    if not session.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER):
        return EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    try:
        inner, at = decode_request_header(request.request_data)
        row = session.table.find(inner.api_key)
        if row is None or not row.forwarded or not row.min_version <= inner.api_version <= row.max_version:
            return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        asked = row.request_class.decode(memoryview(request.request_data)[at:], inner.api_version, REQUEST_ELEMENTS_MAX)
        client = opened(session, request)
    except DecodeError:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    try:
        response = await client.answer(row, inner, asked)
    except KafkaError as error:
        return EnvelopeResponse(error_code=error.code)
    head = encode_response_header(inner.api_key, inner.api_version, inner.correlation_id)
    return EnvelopeResponse(response_data=head + response.encode(inner.api_version))
