"""The cluster as one value: brokers, topics, configurations and all else that the metadata log says.

Doors: `image.Image` (immutable), `delta.Delta` (records applied to an image give the next), `loader.Loader` (a log read
record by record, metadata transactions included), `records.image_records` (an image as records, for a snapshot),
`versions.record_version` (in which version a record is written).

Invariants: (1) replaying `image_records(image)` on an empty image gives an equal image; (2) an image never changes once
it is published: a delta copies what it touches, a topic at a time; (3) every record type of Kafka 4.3 is understood,
and what Penstock has no use for yet is kept whole. It never decides anything: that is the controller's room.
"""
