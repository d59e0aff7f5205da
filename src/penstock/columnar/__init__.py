"""Record batches as columns, and columns as record batches: Kafka's bytes to Arrow and back, compiled by numba.

Doors: `schema` (the columns, and `Wanted`), `decode.Decoder` (raw batches to Arrow), `encode` (Arrow to batches, and
the partition of each key), `ranges.read_range` (a range of offsets from a broker), `writing.TopicWriter` (tables into
topics, plain or in transactions).

Invariants:
1. No object is made per record: Python runs once a batch, compiled kernels once a record.
2. What is not wanted is not materialised: neither copied nor allocated.
3. A kernel reads only where a check before it said that the bytes are there; lengths and counts out of a batch are
   claims, and no memory is taken because of one that its bytes cannot hold.
4. Every batch's CRC-32C is checked before anything in it is believed.
5. A record batch that is handed out is bounded in rows and bytes, and its columns are buffers that were filled once.

It never imports pyspark, and nothing below it imports numba.
"""
