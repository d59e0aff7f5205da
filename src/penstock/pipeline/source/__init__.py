"""Reading topics as data frames: the Python data source behind `format("penstock")`, in batch and as a stream.

Doors: `datasource.PenstockSource`, which Spark finds by itself (src/pyspark_penstock).

Invariants:
1. Options, columns and their types are those of Spark's own Kafka source; an option that nobody knows is an error.
2. Which task reads which offsets follows from the offsets of the batch alone.
3. A range that the cluster no longer has is an error that names partition and offsets, unless failOnDataLoss is false.

It never keeps rows in the driver, and never lets a consumer group decide what is read: the checkpoint does. The group
only shows how far the query has come.
"""
