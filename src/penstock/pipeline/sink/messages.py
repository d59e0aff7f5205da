"""What a task tells the driver when it is done."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    owner: str = ""
    """of the markers; empty where there are none."""
    batch: int = 0
    rows: int = 0
    skipped: bool = False
    """the rows were there already, from an attempt before."""
