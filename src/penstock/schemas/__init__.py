"""Values with a schema: JSON, Avro, Protobuf, text and Kafka's own numbers, to Arrow columns and back, and row by row.

Doors: `formats.Format` (bytes as a column to a typed Arrow array with a reason for each row that could not be read,
and back; `json_format.Json`, `avro_format.Avro`, `protobuf_format.Protobuf`, `plain`), `serdes` (one value at a time,
for Python types), `wire_format` (a registry's frame around a payload), `framed.Framed` (a format behind such frames).
From schema to Arrow, a file each: `json_schema`, `avro_schema`, `protobuf_schema`, `dataclasses`, `ddl` (Spark's).

Invariants:
1. A row that cannot be read is null with a reason; it never fails, shifts or changes another row.
2. Null in is null out, in both directions, without a reason: a tombstone is not an error.
3. Every Arrow type made here is one that Spark knows (no unsigned integers, no unions, timestamps in microseconds).
4. What a column's decoder accepts, the row's decoder of the same schema accepts too, with an equal value.

It never opens a file or a socket: schemas behind an id come from a function that the caller gives.
"""
