"""A load in a process of its own that kills itself at a named step: `python -m tests.unit.pipeline.lake_killed ...`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from penstock.pipeline.lake import open_table
from tests.unit.pipeline.lake_rows import run


def doors(kind: str) -> dict[str, tuple[Any, str]]:
    """What a commit of this kind goes through, by the name of the step."""
    if kind == "delta":
        from deltalake import DeltaTable

        return {"transaction": (DeltaTable, "create_write_transaction")}
    if kind == "iceberg":
        from pyiceberg.catalog.sql import SqlCatalog
        from pyiceberg.table import Transaction

        return {"add_files": (Transaction, "add_files"), "catalogue": (SqlCatalog, "commit_table")}
    from penstock.pipeline.lake.parquet_log import ParquetLog
    from penstock.pipeline.lake.place import Place

    return {"pending": (Place, "put_new"), "move": (Place, "move"), "entry": (ParquetLog, "append")}


def arm(owner: Any, name: str, when: str, calls: int) -> None:
    """SIGKILL before or after that call."""
    real: Callable[..., Any] = getattr(owner, name)
    left = [calls]

    def step(*args: Any, **kwargs: Any) -> Any:
        left[0] -= 1
        if left[0] == 0 and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*args, **kwargs)
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, step)


def main(kind: str, directory: str, attempt: str, step: str, when: str, calls: str) -> None:
    table = open_table(directory, kind)
    if step != "none":
        arm(*doors(kind)[step], when, int(calls))
    run(table, attempt)


if __name__ == "__main__":
    main(*sys.argv[1:])
