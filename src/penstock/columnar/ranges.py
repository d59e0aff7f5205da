"""A range of offsets of one partition as Arrow: fetched raw, decoded while the next answer is on its way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import pyarrow as pa

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.columnar.decode import BATCH_BYTES, BATCH_ROWS, Decoder
from penstock.columnar.schema import COLUMNS
from penstock.columnar.settings import Options
from penstock.wire.blocking import Client
from penstock.wire.conversation import REQUEST_TIMEOUT_MS, Conversation, now
from penstock.wire.errors import TimedOut
from penstock.wire.fetch import Fetcher, Reset, Settings
from penstock.wire.offsets import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from penstock.wire.positions import Fetched
from penstock.wire.routes import know_leaders
from penstock.wire.sessions import FetchLimits

Isolation = Literal["read_committed", "read_uncommitted"]
Lost = Literal["fail", "skip"]

FETCH_BYTES = 4_194_304
"""bytes asked for at a time: two answers are in memory at once, one being decoded and one arriving. What is decoded is
still in the processor's caches when Spark reads it."""
TIMEOUT_MS = 120_000
"""ms without any progress after which a range that does not end is given up; Spark's own default."""

_LEVELS = {"read_committed": READ_COMMITTED, "read_uncommitted": READ_UNCOMMITTED}


def read_range(
    bootstrap: str,
    topic: str,
    partition: int,
    start: int,
    end: int,
    *,
    wanted: Iterable[str] = COLUMNS,
    isolation: Isolation = "read_committed",
    config: Mapping[str, str] | None = None,
    batch_rows: int = BATCH_ROWS,
    batch_bytes: int = BATCH_BYTES,
    lost: Lost = "fail",
    timeout_ms: int = TIMEOUT_MS,
    client: Client | None = None,
) -> Iterator[pa.RecordBatch]:
    """The records with offsets in [start, end), which must be in the log or be written within `timeout_ms`.

    Offsets that are no longer there raise OFFSET_OUT_OF_RANGE, or are passed over where `lost` is "skip". A `client` is
    used and left open; else one is made and closed."""
    options = Options(config or {})
    if isolation not in _LEVELS:
        raise ValueError(f"isolation is read_committed or read_uncommitted, not {isolation!r}")
    place = TopicPartition(topic, partition)
    decoder = Decoder(topic, partition, wanted, committed_only=isolation == "read_committed")
    if start >= end:
        return
    own = client is None
    client = client or options.client(bootstrap)
    try:
        for fetched in _fetch(client, _settings(options, _LEVELS[isolation]), place, start, end, lost, timeout_ms):
            yield from decoder.decode_many(
                fetched.data, fetched.position, end, fetched.aborted, batch_rows=batch_rows, batch_bytes=batch_bytes
            )
    finally:
        if own:
            client.close()


def _fetch(
    client: Client, settings: Settings, place: TopicPartition, start: int, end: int, lost: Lost, timeout_ms: int
) -> Iterator[Fetched]:
    """Raw batches that together hold the range; the first and the last may reach beyond it."""
    _find(client, place, min(timeout_ms, REQUEST_TIMEOUT_MS))
    fetcher = Fetcher(client.cluster, settings)
    fetcher.assign({place: start})
    while start < end:
        try:
            fetched = client.run(_next(fetcher, place, end, timeout_ms))
        except KafkaError as error:
            if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            left = client.run(_clipped(client, place, start, end)) if lost == "skip" else (start, end)
            if left == (start, end):
                raise _gone(place, start, end) from error
            start, end = left
            fetcher.assign({place: start})
        else:
            start = fetched.next_offset
            yield fetched


def _settings(options: Options, isolation: int) -> Settings:
    """The decoder checks the CRCs itself."""
    limits = FetchLimits(
        max_wait_ms=options.number("fetch.max.wait.ms", 500),
        min_bytes=options.number("fetch.min.bytes", 1),
        max_bytes=options.number("fetch.max.bytes", 52_428_800),
        isolation=isolation,
        rack=options.text("client.rack", ""),
    )
    partition_bytes_max = options.number("max.partition.fetch.bytes", FETCH_BYTES)
    return Settings(limits, partition_bytes_max, Reset.NONE, sessions=False, check_crcs=False)


def _find(client: Client, place: TopicPartition, timeout_ms: int) -> None:
    """A partition that nobody knows is told at once, not after the time in which a record may arrive."""
    try:
        client.run(know_leaders(client.cluster, [place], timeout_ms=timeout_ms))
    except KafkaError as error:
        raise KafkaError(
            error.code,
            f"topic {place.topic} partition {place.partition} cannot be read: {error}; check the name, the bootstrap "
            "servers, and that the topic was not deleted",
        ) from error


def _next(fetcher: Fetcher, place: TopicPartition, end: int, timeout_ms: int) -> Conversation[Fetched]:
    """What has arrived; the request for what follows it is sent before this returns."""
    give_up_ms = (yield from now()) + timeout_ms
    while True:
        left_ms = give_up_ms - (yield from now())
        if left_ms <= 0:
            raise _stalled(fetcher, place, end, timeout_ms)
        found = yield from fetcher.poll(left_ms)
        if found:
            break
    (fetched,) = found
    if fetched.next_offset < end:
        yield from fetcher.request()
    return fetched


def _clipped(client: Client, place: TopicPartition, start: int, end: int) -> Conversation[tuple[int, int]]:
    """What of the range is in the log."""
    first = (yield from list_offsets(client.cluster, {place: EARLIEST}))[place].offset
    last = (yield from list_offsets(client.cluster, {place: LATEST}))[place].offset
    return max(start, first), min(end, last)


def _stalled(fetcher: Fetcher, place: TopicPartition, end: int, timeout_ms: int) -> KafkaError:
    position = fetcher.positions[place]
    cause = "check that its leader is alive"
    if 0 <= position.last_stable_offset <= position.offset < position.high_watermark:
        cause = "a transaction is open there: it must be committed or aborted before committed records can be read on"
    elif 0 <= position.high_watermark <= position.offset:
        cause = f"the log ends at {position.high_watermark}"
    return TimedOut(
        f"topic {place.topic} partition {place.partition}: no record from offset {position.offset} on arrived within "
        f"{timeout_ms} ms, and {end} is the end that was asked for; {cause}"
    )


def _gone(place: TopicPartition, start: int, end: int) -> KafkaError:
    return KafkaError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"topic {place.topic} partition {place.partition}: offsets {start} to {end} are not in the log: they were "
        "deleted by retention, or the topic was created anew; read from what is left (failOnDataLoss=false)",
    )
