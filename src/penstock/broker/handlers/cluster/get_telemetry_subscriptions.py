"""GetTelemetrySubscriptions 0 (KIP-714): what a client is to push of its own metrics, and how often."""

from __future__ import annotations

from penstock.base.errors import KafkaError
from penstock.base.ids import NO_ID, id_text
from penstock.broker.network.session import Session
from penstock.broker.telemetry import ACCEPTED_CODECS
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from penstock.protocol.generated.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse


def handle(
    session: Session, header: RequestHeader, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    services = session.services
    instance = request.client_instance_id
    if instance == NO_ID:
        instance = services.random.bytes(16)
    try:
        client = services.telemetry.subscribe(
            instance, _traits(session, instance), services.image, services.clock.monotonic_ms()
        )
    except KafkaError as fault:
        return GetTelemetrySubscriptionsResponse(error_code=fault.code, client_instance_id=instance)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance,
        subscription_id=client.subscription_id,
        accepted_compression_types=ACCEPTED_CODECS,
        push_interval_ms=client.interval_ms,
        telemetry_max_bytes=services.telemetry.max_bytes,
        delta_temporality=True,
        requested_metrics=client.metrics,
    )


def _traits(session: Session, instance: bytes) -> dict[str, str]:
    name, version = session.client_software
    return {
        "client_instance_id": id_text(instance),
        "client_id": session.client_id,
        "client_software_name": name,
        "client_software_version": version,
        "client_source_address": session.peer.host,
        "client_source_port": str(session.peer.port),
    }
