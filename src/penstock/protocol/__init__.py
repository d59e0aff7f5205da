"""The protocol: bytes to messages and back, for every API and record type of Apache Kafka 4.3.

Doors: `registry` (classes and version ranges by number), `generated/<message>` (one class per message, all versions),
`frames` (lengths and headers), `metadata_frames` (envelopes of records in logs), `hot_produce` and `hot_fetch` (the
data path by hand, equal to the generated classes on the wire), `codec` (the primitive types).

Invariants:
1. Bad bytes raise DecodeError and nothing else; a version that a message does not have raises KafkaError.
2. Nothing is allocated from a declared count or length that the bytes at hand cannot hold.
3. What is written at a version loses no field silently, except those that the specification calls ignorable.
4. Text that is not UTF-8 survives a round trip unchanged.

It never decides anything about content, and never touches the bytes of record batches.
"""
