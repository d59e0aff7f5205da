"""A table's directory, on a local disk or an object store: `Place.of("lake/orders")`, `Place.of("s3://bucket/orders")`.

Paths are relative to it. Credentials come from the environment as the cloud's own tools take them, or from `storage`,
which has PyIceberg's names: s3.endpoint, s3.region, s3.access-key-id, s3.secret-access-key, s3.session-token.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyarrow import fs

from penstock.pipeline.lake import durable, objects
from penstock.pipeline.lake.errors import LakeError

LOCAL = "file://"
S3_ARGUMENTS = {
    "s3.endpoint": "endpoint_override",
    "s3.region": "region",
    "s3.access-key-id": "access_key",
    "s3.secret-access-key": "secret_key",
    "s3.session-token": "session_token",
}
DELTA_NAMES = {
    "s3.endpoint": "AWS_ENDPOINT_URL",
    "s3.region": "AWS_REGION",
    "s3.access-key-id": "AWS_ACCESS_KEY_ID",
    "s3.secret-access-key": "AWS_SECRET_ACCESS_KEY",
    "s3.session-token": "AWS_SESSION_TOKEN",
}


@dataclass(frozen=True)
class Place:
    """Can be pickled: tasks write there too."""

    uri: str
    """of a local directory: file:// and the path as it is. Libraries do not agree on what is to be escaped in it."""
    storage: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str, storage: Mapping[str, str] | None = None) -> Place:
        """A path of this machine or a URI."""
        if re.match(r"[a-z][a-z0-9+.-]+://", text) is None or text.startswith("file:/"):
            path = os.path.abspath(unquote(re.sub("^file:/+", "/", text)) if text.startswith("file:/") else text)
            return cls(LOCAL + path, dict(storage or {}))
        return cls(text.rstrip("/"), dict(storage or {}))

    @property
    def is_local(self) -> bool:
        return self.uri.startswith(LOCAL)

    @property
    def location(self) -> str:
        """The path where it is local, else the URI."""
        return self.uri.removeprefix(LOCAL)

    @property
    def delta_storage(self) -> dict[str, str]:
        """The storage options by delta-rs' names; those we do not know stay as they are."""
        named = {DELTA_NAMES.get(name, name): value for name, value in self.storage.items()}
        return {"AWS_ALLOW_HTTP": "true", **named} if objects.is_plain_http(self.storage) else named

    def __getstate__(self) -> dict[str, Any]:
        return {"uri": self.uri, "storage": dict(self.storage)}

    @cached_property
    def _root(self) -> tuple[Any, str]:
        if self.is_local:
            return fs.LocalFileSystem(), self.location
        try:
            if self.uri.startswith("s3:") and self.storage:
                chosen = {S3_ARGUMENTS[name]: text for name, text in self.storage.items() if name in S3_ARGUMENTS}
                return fs.S3FileSystem(**chosen), self.uri.removeprefix("s3://")
            found, root = fs.FileSystem.from_uri(self.uri)
        except (OSError, ValueError) as error:
            raise LakeError(f"{self.uri} cannot be reached: {error}") from None
        return found, root

    @property
    def filesystem(self) -> Any:
        return self._root[0]

    def path(self, relative: str) -> str:
        """As the file system has it."""
        return f"{self._root[1]}/{relative}" if relative else self._root[1]

    def uri_of(self, relative: str) -> str:
        return f"{self.uri}/{relative}"

    def make_directory(self, relative: str = "") -> None:
        """To stay; nothing is done where a file system has none."""
        if self.is_local:
            durable.make_directory(self.path(relative))

    def open_new(self, relative: str) -> Any:
        """A stream to write. An object is there, for good, when it is closed; a file is so when it is synced too."""
        self.make_directory(relative.rpartition("/")[0])
        return self.filesystem.open_output_stream(self.path(relative))

    def sync(self, files: Collection[str]) -> None:
        """These files are there after a power loss too."""
        if self.is_local:
            for relative in files:
                durable.sync(self.path(relative))
        self.sync_names(files)

    def sync_names(self, files: Iterable[str]) -> None:
        """That they are there, or are not, holds after a power loss too. Their bytes are those that were synced."""
        if self.is_local:
            durable.sync_names([self.path(relative) for relative in files], self.location)

    def size_and_time_ms(self, relative: str) -> tuple[int, int]:
        info = self.filesystem.get_file_info(self.path(relative))
        return info.size, (info.mtime_ns or 0) // 1_000_000

    def exists(self, relative: str) -> bool:
        return bool(self.filesystem.get_file_info(self.path(relative)).type != fs.FileType.NotFound)

    def read(self, relative: str) -> bytes:
        with self.filesystem.open_input_stream(self.path(relative)) as stream:
            return bytes(stream.read())

    def read_if_there(self, relative: str) -> bytes | None:
        """Others may remove it at any moment."""
        try:
            return self.read(relative)
        except OSError:  # of an object store, not always FileNotFoundError
            if self.exists(relative):
                raise
            return None

    def names(self, relative: str) -> list[str]:
        """Of the files in a directory, sorted; none where there is no such directory."""
        selector = fs.FileSelector(self.path(relative), allow_not_found=True)
        return sorted(info.base_name for info in self.filesystem.get_file_info(selector) if info.is_file)

    def put_new(self, relative: str, content: bytes) -> bool:
        """A whole file or none, and false where there is one, whoever else writes it at the same moment."""
        if self.is_local:
            return self._link_new(relative, content)
        return objects.put_new(self.uri, self.storage, relative, content)

    def check_put_new(self) -> None:
        """Raises LakeError where a store takes the same object twice: there commits would overwrite each other."""
        if self.is_local:
            return
        self.put_new(objects.PROBE, b"")
        if self.put_new(objects.PROBE, b""):
            raise LakeError(
                f"the object store of {self.uri} writes over an object that it was told to write only where there is "
                "none (If-None-Match), so commits could overwrite each other: use a store that knows it, or an Iceberg "
                "table with a catalogue"
            )
        self.remove(objects.PROBE)

    def _link_new(self, relative: str, content: bytes) -> bool:
        target = self.path(relative)
        draft = f"{target}.{os.getpid()}.draft"
        self.make_directory(relative.rpartition("/")[0])
        Path(draft).write_bytes(content)
        durable.sync(draft)
        try:
            os.link(draft, target)
            made = True
        except FileExistsError:
            made = False
        finally:
            os.unlink(draft)
        # Where it is somebody else's too: what is built upon it must not outlive it.
        self.sync_names([relative])
        return made

    def move(self, source: str, target: str) -> None:
        """Done already where only the target is there."""
        self.make_directory(target.rpartition("/")[0])
        try:
            self.filesystem.move(self.path(source), self.path(target))
        except OSError:  # of an object store, not always FileNotFoundError
            if self.exists(source):
                raise
            if not self.exists(target):
                raise LakeError(f"{self.uri_of(target)} belongs to the table, and is gone; so is {source}") from None

    def remove(self, relative: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.filesystem.delete_file(self.path(relative))

    def remove_directory(self, relative: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.filesystem.delete_dir(self.path(relative))

    def remove_strays(self, keep: Collection[str], prefix: str) -> None:
        """Files whose names begin with `prefix` and that are not to be kept, in the directories of those that are."""
        for directory in sorted({path.rpartition("/")[0] for path in keep}):
            for name in self.names(directory):
                stray = f"{directory}/{name}" if directory else name
                if name.startswith(prefix) and stray not in keep:
                    self.remove(stray)
