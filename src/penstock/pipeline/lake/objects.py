"""An object that is written only where there is none: what a commit on an object store stands on.

pyarrow's file systems, which read and write everything else, cannot ask a store for that; Rust's object_store can, and
delta-rs does so by itself. S3 calls it If-None-Match.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from penstock.pipeline.lake.errors import LakeError

S3_NAMES = {
    "s3.endpoint": "endpoint",
    "s3.region": "region",
    "s3.access-key-id": "access_key_id",
    "s3.secret-access-key": "secret_access_key",
    "s3.session-token": "session_token",
}
PROBE = "_penstock_probe"


def is_plain_http(storage: Mapping[str, str]) -> bool:
    """Rust's object_store speaks it only where it is told to."""
    return storage.get("s3.endpoint", "").startswith("http://")


def put_new(uri: str, storage: Mapping[str, str], relative: str, content: bytes) -> bool:
    """The whole object, or false where there is one, whoever else writes it at the same moment."""
    from obstore.exceptions import AlreadyExistsError, BaseError  # noqa: PLC0415 only object stores need it

    store = _store(uri, tuple(sorted(storage.items())))
    try:
        store.put(relative, content, mode="create")
    except AlreadyExistsError:
        return False
    except BaseError as error:
        raise LakeError(f"{uri}/{relative} cannot be written: {error}") from None
    return True


@lru_cache(maxsize=16)
def _store(uri: str, storage: tuple[tuple[str, str], ...]) -> Any:
    try:
        from obstore.exceptions import BaseError  # noqa: PLC0415 only object stores need it
        from obstore.store import from_url  # noqa: PLC0415 only object stores need it
    except ModuleNotFoundError:
        raise LakeError(
            f"a table at {uri} needs obstore, which is not installed: pip install 'penstock[lake]'"
        ) from None
    given = dict(storage)
    chosen: dict[str, Any] = {S3_NAMES[name]: value for name, value in given.items() if name in S3_NAMES}
    if is_plain_http(given):
        chosen["client_options"] = {"allow_http": True}
    try:
        return from_url(uri, **chosen)
    except (BaseError, ValueError) as error:
        raise LakeError(f"{uri} cannot be reached: {error}") from None
