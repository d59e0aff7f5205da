"""An S3 server in a process of its own: `python -m tests.pipeline.object_store` says its port and ends with its input.

Not in the process of the test: delta-rs keeps Python from answering while it asks.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs

ROOT = Path(__file__).parents[2]
BUCKET = "lake"


@dataclass(frozen=True)
class ObjectStore:
    endpoint: str

    @property
    def storage(self) -> dict[str, str]:
        """As `--storage` takes it."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.region": "us-east-1",
            "s3.access-key-id": "anybody",
            "s3.secret-access-key": "anything",
        }

    def filesystem(self) -> fs.S3FileSystem:
        return fs.S3FileSystem(
            endpoint_override=self.endpoint,
            region="us-east-1",
            access_key="anybody",
            secret_key="anything",
            allow_bucket_creation=True,
        )

    def paths(self, directory: str) -> list[str]:
        selector = fs.FileSelector(f"{BUCKET}/{directory}", recursive=True, allow_not_found=True)
        return sorted(info.path for info in self.filesystem().get_file_info(selector) if info.is_file)


@contextmanager
def serving() -> Iterator[ObjectStore]:
    command = [sys.executable, "-m", "tests.pipeline.object_store"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            assert port, "the S3 server did not start"
            store = ObjectStore(f"http://127.0.0.1:{port}")
            store.filesystem().create_dir(BUCKET)
            yield store
        finally:
            process.kill()


def main() -> None:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    sys.stdout.write(f"{server.get_host_and_port()[1]}\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
