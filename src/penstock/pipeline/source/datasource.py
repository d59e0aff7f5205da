"""`format("penstock")`: what Spark knows of us. It finds this class by the module `pyspark_penstock`.

Spark makes it in several processes: to look it up, to ask for the schema, to plan, to read and to write. So each part
is imported by the process that needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
)
from pyspark.sql.types import StructType

from penstock.pipeline.settling import settle
from penstock.pipeline.source.options import ReadOptions, parse
from penstock.pipeline.source.schema import RECORD, check_schema, chosen_schema

if TYPE_CHECKING:
    from penstock.pipeline.formats import Formats
    from penstock.pipeline.source.tasks import Reading

FORMAT_NAMES = (
    "valueFormat",
    "keyFormat",
    "valueSchema",
    "keySchema",
    "messageName",
    "keyMessageName",
    "valueSubject",
    "keySubject",
    "schema.registry.url",
    "schema.registry.basic.auth.user.info",
    "mode",
    "errorColumn",
)
"""Options that `penstock.pipeline.formats` reads."""


class PenstockSource(DataSource):
    """Topics as data frames, in batch and as streams, read and written."""

    @classmethod
    def name(cls) -> str:
        return "penstock"

    def schema(self) -> StructType:
        chosen = chosen_schema(self._read_options(None))
        formats = self._formats()
        settle()
        return chosen if formats is None else formats.spark_schema(chosen)

    def reader(self, schema: StructType) -> DataSourceReader:
        from penstock.pipeline.source.batch import BatchReader, PushingBatchReader  # noqa: PLC0415 see above

        reading = self._reading(schema, streaming=False)
        settle()
        return (PushingBatchReader if reading.options.push_filters else BatchReader)(reading)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from penstock.pipeline.source.stream import StreamReader  # noqa: PLC0415 see above

        settle()
        return StreamReader(self._reading(schema, streaming=True))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        from penstock.pipeline.sink import writer  # noqa: PLC0415 see above

        settle()
        return writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        from penstock.pipeline.sink import stream_writer  # noqa: PLC0415 see above

        settle()
        return stream_writer(self.options, schema, overwrite)

    def _reading(self, schema: StructType, streaming: bool) -> Reading:
        from penstock.pipeline.source.tasks import Reading  # noqa: PLC0415 see above

        options = self._read_options(streaming)
        formats = self._formats()
        check_schema(schema, RECORD if formats is None else formats.spark_schema(RECORD))
        return Reading(options, schema, formats)

    def _read_options(self, streaming: bool | None) -> ReadOptions:
        return parse(self.options, streaming=streaming, others=FORMAT_NAMES)

    def _formats(self) -> Formats | None:
        """None where keys and values stay bytes: then nothing about formats needs to be loaded."""
        if not any(name in self.options for name in FORMAT_NAMES):
            return None
        from penstock.pipeline.formats import formats_of  # noqa: PLC0415 see above

        formats = formats_of(self.options)
        return None if formats.is_plain else formats
