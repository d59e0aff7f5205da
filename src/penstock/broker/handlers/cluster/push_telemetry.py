"""PushTelemetry 0 (KIP-714): a client's metrics, in OTLP, compressed; bounded before and after expansion."""

from __future__ import annotations

from penstock.base.errors import KafkaError
from penstock.broker.network.session import Session
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.push_telemetry_request import PushTelemetryRequest
from penstock.protocol.generated.push_telemetry_response import PushTelemetryResponse


def handle(session: Session, header: RequestHeader, request: PushTelemetryRequest) -> PushTelemetryResponse:
    services = session.services
    try:
        services.telemetry.push(
            request.client_instance_id,
            request.subscription_id,
            request.terminating,
            request.compression_type,
            request.metrics,
            services.clock.monotonic_ms(),
        )
    except KafkaError as fault:
        return PushTelemetryResponse(error_code=fault.code)
    return PushTelemetryResponse()
