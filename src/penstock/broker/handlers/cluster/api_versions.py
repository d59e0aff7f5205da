"""ApiVersions 0-4 (KIP-35, KIP-511, KIP-584, KIP-1022).

Answered from the table of APIs. A version we do not know gets a v0 body with UNSUPPORTED_VERSION and our range, so that
the client can come down to it. Features name only what is served.
"""

from __future__ import annotations

import re

from penstock.base.errors import ErrorCode
from penstock.broker.network.session import Session
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.api_versions_request import ApiVersionsRequest
from penstock.protocol.generated.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_API_VERSIONS = 18
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_LEVEL_0_FROM_VERSION = 4
"""older clients take a feature's smallest level 0 for a mistake"""


def handle(session: Session, header: RequestHeader, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if header.api_version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not _SOFTWARE.fullmatch(name) or not _SOFTWARE.fullmatch(version):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        session.client_software = (name, version)
    features = session.services.features()
    lowest = 0 if header.api_version >= _LEVEL_0_FROM_VERSION else 1
    return ApiVersionsResponse(
        api_keys=_keys(session),
        supported_features=[
            SupportedFeatureKey(name=name, min_version=max(low, lowest), max_version=high)
            for name, (low, high) in features.supported.items()
        ],
        finalized_features_epoch=features.epoch,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in features.finalized.items()
            if level > 0
        ],
    )


def unsupported(session: Session) -> ApiVersionsResponse:
    own = [key for key in _keys(session) if key.api_key == _API_VERSIONS]
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)


def _keys(session: Session) -> list[ApiVersion]:
    return [
        ApiVersion(api_key=row.key, min_version=row.advertised_from, max_version=row.max_version)
        for row in session.table.rows
    ]
