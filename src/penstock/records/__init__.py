"""Record batches of format v2: a view over their bytes, never a copy of them where a view will do.

Doors: `batch` (header, CRC, patches in place, walking a buffer), `record` (reading and checking what is inside),
`builder` (batches of our own), `control` (markers and the quorum's control records), `compression` (codecs under a byte
budget). The layout is on one page: docs/formats/record-batch.md.

Invariants:
1. Base offset and leader epoch are the only fields written without a new CRC, for the CRC does not cover them.
2. A header is only read where its 61 bytes are there; a batch is only walked over where all its bytes are.
3. Bytes that expand are expanded into at most the caller's budget, whatever their headers claim.
4. A record that is handed out fills its declared size to the byte, and the records fill the batch to the byte.
5. What is built here is to the byte what Apache Kafka builds from the same input, where nothing is compressed.
6. Bad bytes raise KafkaError: CORRUPT_MESSAGE for frames and compressed data, INVALID_RECORD for what is inside and for
   the formats before v2, MESSAGE_TOO_LARGE above the budget, UNSUPPORTED_COMPRESSION_TYPE for codecs 5 to 7.

It never opens a file, never asks the clock, and makes no object per record unless the caller asks for records.
"""
