"""A client of a Confluent-compatible schema registry, over HTTP.

`Registry` gets schemas by id and by subject, and registers them; what an id stands for never changes and is kept. It
can be pickled, without what it keeps. `RegistryError` names the request, the registry's own code and its text.
"""

from __future__ import annotations

import base64
import http.client
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from penstock.schemas.errors import SchemaError
from penstock.schemas.specs import Spec

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
TIMEOUT_S = 10.0
ANSWER_BYTES_MAX = 16 << 20
KEPT_SCHEMAS = 1_000
REFERENCES_MAX = 100
NOT_FOUND = range(40401, 40500)
FORMATS = {"AVRO": "avro", "JSON": "json", "PROTOBUF": "protobuf"}
TYPES = {name: word for word, name in FORMATS.items()}


class RegistryError(RuntimeError):
    """The registry cannot be reached, or it refused. No SchemaError: it says nothing about a record."""

    def __init__(self, said: str, code: int | None = None) -> None:
        super().__init__(said)
        self.code = code
        """The registry's error code, if it gave one: 40401 no such subject, 40403 no such schema, 409 incompatible."""

    def __reduce__(self) -> tuple[type[RegistryError], tuple[str, int | None]]:
        return (RegistryError, (str(self), self.code))


@dataclass(frozen=True)
class Registered:
    """A schema as it stands in the registry."""

    schema_id: int
    spec: Spec
    subject: str | None = None
    version: int | None = None


@dataclass
class Registry:
    """A registry at a URL; several, separated by commas, are tried one after another."""

    url: str
    user_info: str | None = None
    """`user:password` for basic authentication; one inside the URL serves too."""
    timeout_s: float = TIMEOUT_S
    _kept: dict[int, Spec] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_kept": {}}

    def schema(self, schema_id: int) -> Spec:
        """The schema behind an id."""
        if schema_id not in self._kept:
            spec = self._spec(self._ask("GET", f"/schemas/ids/{schema_id}"))
            if len(self._kept) >= KEPT_SCHEMAS:
                self._kept.pop(next(iter(self._kept)))
            self._kept[schema_id] = spec
        return self._kept[schema_id]

    def lookup(self, schema_id: int) -> Spec:
        """The schema behind an id; SchemaError where the registry knows none: that is the record's fault."""
        try:
            return self.schema(schema_id)
        except RegistryError as error:
            if error.code == 404 or error.code in NOT_FOUND:
                raise SchemaError(str(error)) from None
            raise

    def version(self, subject: str, version: int | str = "latest") -> Registered:
        """A version of a subject; the latest one if not said otherwise."""
        told = self._ask("GET", f"/subjects/{urllib.parse.quote(subject, safe='')}/versions/{version}")
        found = Registered(int(told["id"]), self._spec(told), told.get("subject", subject), told.get("version"))
        self._kept.setdefault(found.schema_id, found.spec)
        return found

    def register(self, subject: str, spec: Spec) -> int:
        """The id of a schema under a subject, new or as it was."""
        if spec.format not in TYPES or spec.schema is None:
            raise RegistryError(f"a schema of avro, json or protobuf can be registered, not {spec.format}")
        body: dict[str, Any] = {"schema": spec.schema}
        if spec.format != "avro":
            body["schemaType"] = TYPES[spec.format]
        told = self._ask("POST", f"/subjects/{urllib.parse.quote(subject, safe='')}/versions", body)
        return int(told["id"])

    def _spec(self, told: Mapping[str, Any]) -> Spec:
        word = told.get("schemaType", "AVRO")
        if word not in FORMATS:
            raise RegistryError(f"the registry at {self._shown()} has a schema of the type {word!r}, which is not read")
        references: dict[str, str] = {}
        self._gather(told.get("references") or (), references)
        return Spec(FORMATS[word], told["schema"], None, references)

    def _gather(self, named: Any, found: dict[str, str]) -> None:
        """The texts that a schema refers to, each behind those that it refers to itself."""
        for one in named:
            if one["name"] in found:
                continue
            if len(found) >= REFERENCES_MAX:
                raise RegistryError(f"a schema refers to more than {REFERENCES_MAX} others")
            path = f"/subjects/{urllib.parse.quote(one['subject'], safe='')}/versions/{one['version']}"
            told = self._ask("GET", path)
            self._gather(told.get("references") or (), found)
            found[one["name"]] = told["schema"]

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        unreached: list[str] = []
        for url in self.url.split(","):
            try:
                return self._asked(url.strip().rstrip("/"), method, path, body)
            except (urllib.error.URLError, http.client.HTTPException, TimeoutError, OSError) as error:
                unreached.append(str(getattr(error, "reason", error)))
        raise RegistryError(
            f"the schema registry at {self._shown()} cannot be reached: {'; '.join(unreached)}; "
            "is schema.registry.url right?"
        )

    def _asked(self, url: str, method: str, path: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        base, user_info = _without_user(url)
        headers = {"Accept": CONTENT_TYPE, "Content-Type": CONTENT_TYPE}
        known = self.user_info or user_info
        if known:
            headers["Authorization"] = f"Basic {base64.b64encode(known.encode()).decode()}"
        data = None if body is None else msgspec.json.encode(body)
        request = urllib.request.Request(base + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=self.timeout_s) as answer:
                return self._parsed(answer.read(ANSWER_BYTES_MAX + 1), f"{method} {path}")
        except urllib.error.HTTPError as error:
            with error:
                raise self._refused(error, f"{method} {path}") from None

    def _parsed(self, data: bytes, request: str) -> dict[str, Any]:
        if len(data) > ANSWER_BYTES_MAX:
            raise RegistryError(f"the registry's answer to {request} is larger than {ANSWER_BYTES_MAX} bytes")
        try:
            return msgspec.json.decode(data, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise RegistryError(f"what answers at {self._shown()} is no schema registry ({request}): {error}") from None

    def _refused(self, error: urllib.error.HTTPError, request: str) -> RegistryError:
        if error.code in (401, 403):
            return RegistryError(
                f"the registry at {self._shown()} refused {request} (HTTP {error.code}): "
                "give schema.registry.basic.auth.user.info as user:password",
                error.code,
            )
        try:
            told = msgspec.json.decode(error.read(ANSWER_BYTES_MAX), type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, OSError):
            told = {}
        code = told.get("error_code", error.code)
        return RegistryError(f"{request} at {self._shown()}: {told.get('message', error.reason)} (code {code})", code)

    def _shown(self) -> str:
        """The URL without a password."""
        return ",".join(_without_user(one.strip())[0] for one in self.url.split(","))


def _without_user(url: str) -> tuple[str, str | None]:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise RegistryError(f"schema.registry.url is {url!r}; it is like http://host:8081")
    if parts.username is None:
        return url, None
    user_info = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])), user_info
