"""PyIceberg's files on a local disk: each is synced as it is closed, so before the catalogue names it.

Without it PyIceberg leaves that to the system, while the catalogue syncs what it writes: after a power loss it could
name metadata that is not there.
"""

from __future__ import annotations

import os
from typing import Any

from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from penstock.pipeline.lake import durable


class DurableFileIO(PyArrowFileIO):
    """For PyIceberg's property `py-io-impl`, where tables are on a local disk."""

    def new_output(self, location: str) -> PyArrowFile:
        plain = super().new_output(location)
        return DurableFile(plain.location, plain._path, plain._filesystem, plain._buffer_size)


class DurableFile(PyArrowFile):
    def create(self, overwrite: bool = False) -> Any:
        durable.make_directory(os.path.dirname(self._path))
        return SyncedStream(super().create(overwrite), self._path)


class SyncedStream:
    """PyIceberg's output stream."""

    def __init__(self, stream: Any, path: str) -> None:
        self._stream = stream
        self._path = path

    def write(self, content: bytes) -> int:
        return int(self._stream.write(content))

    def close(self) -> None:
        if not self._stream.closed:
            self._stream.close()
            durable.sync(self._path)
            durable.sync(os.path.dirname(self._path))

    def __enter__(self) -> SyncedStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
