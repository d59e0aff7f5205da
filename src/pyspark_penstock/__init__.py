"""Where Spark finds `format("penstock")`: it looks for `DefaultSource` in top-level modules called `pyspark_*`."""

from penstock.pipeline.source.datasource import PenstockSource as DefaultSource

__all__ = ["DefaultSource"]
