"""One task's rows, written exactly once: fence, look at the marker, write rows and marker in one transaction.

Everything that may go wrong between two lines here is told in the package's docstring.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.base.errors import ErrorCode, KafkaError
from penstock.pipeline.sink import ending
from penstock.pipeline.sink.errors import SinkError
from penstock.pipeline.sink.kept import kept_client
from penstock.pipeline.sink.markers import Ledger, Marker, Verdict, batch_place, judge, task_place
from penstock.pipeline.sink.messages import Written
from penstock.pipeline.sink.options import SinkOptions
from penstock.pipeline.sink.output import open_writer
from penstock.pipeline.sink.task import Task
from penstock.protocol.generated.api_versions_request import ApiVersionsRequest
from penstock.protocol.generated.api_versions_response import ApiVersionsResponse
from penstock.protocol.generated.end_txn_request import EndTxnRequest
from penstock.protocol.generated.txn_offset_commit_request import TxnOffsetCommitRequest
from penstock.wire import blocking
from penstock.wire.connection import SOFTWARE_NAME
from penstock.wire.routes import ask_any

if TYPE_CHECKING:
    from penstock.columnar.writing import TopicWriter

NEEDED = {"TxnOffsetCommit": TxnOffsetCommitRequest.API_KEY, "EndTxn": EndTxnRequest.API_KEY}
FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING})


def write_once(batches: Iterator[pa.RecordBatch], task: Task, options: SinkOptions) -> Written:
    """`batches` hold the columns that `TopicWriter` knows. All are taken, even where nothing is written: what computes
    them keeps state, and Spark commits that state only behind the last row."""
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        ending.expect_whole()
        return Written(task.owner, task.batch, 0)
    rows = chain([first], batches)
    with kept_client(options) as client:
        expect_transactions(client, options.bootstrap)
        ledger = Ledger(client, options.marker_topic)
        ledger.prepare()
        place = task_place(task.owner, task.number)
        # A late copy of a task that is done must not fence the one that works on the next batch.
        seen = ledger.read(place, stable=False)
        if seen is not None and seen.next_batch > task.batch:
            return _skip(rows, task, seen, options)
        try:
            output = open_writer(client, options, task.transactional_id(options.transactional_id_prefix))
            output.init()
            own = ledger.read(place, stable=True)
            verdict = judge(task.batch, own, ledger.read(batch_place(task.owner), stable=False))
            if verdict is Verdict.SKIP:
                return _skip(rows, task, own, options)
            if verdict is Verdict.LOST and options.fail_on_lost_markers:
                raise _lost(task, options)
            return _write(rows, task, output, ledger)
        except KafkaError as error:
            raise _explained(error, task, options) from error


def expect_transactions(client: blocking.Client, bootstrap: str) -> None:
    """Raises where the brokers have none, naming what can be done."""
    request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version="0")
    answer = client.run(ask_any(client.cluster, request, ApiVersionsResponse, lambda reply: reply.error_code))
    served = {one.api_key for one in answer.api_keys}
    missing = [name for name, key in NEEDED.items() if key not in served]
    if missing:
        raise SinkError(
            f"the brokers at {bootstrap} have no transactions (they do not serve {' and '.join(missing)}), and without "
            "them rows cannot be written exactly once: set the option exactlyOnce to false to write at least once, or "
            "write to a cluster that has them"
        )


def _write(rows: Iterator[pa.RecordBatch], task: Task, output: TopicWriter, ledger: Ledger) -> Written:
    output.begin()
    try:
        count = 0
        for batch in rows:
            output.write(batch)
            count += batch.num_rows
        ending.expect_whole()
        marker = Marker(task.batch + 1, count, task.run, task.write)
        output.commit(ledger.offsets(task_place(task.owner, task.number), marker))
    except Exception:
        # What cannot be aborted now, the next attempt's fencing ends, or the transaction's timeout.
        with contextlib.suppress(KafkaError):
            output.abort()
        raise
    return Written(task.owner, task.batch, count)


def _skip(rows: Iterator[pa.RecordBatch], task: Task, marker: Marker | None, options: SinkOptions) -> Written:
    """These rows are there; compute them for the state they leave, and see that they are as many as then."""
    count = sum(batch.num_rows for batch in rows)
    ending.expect_whole()
    if marker is not None and marker.next_batch == task.batch + 1:
        _expect_the_same(task, marker, count, options)
    return Written(task.owner, task.batch, count, skipped=True)


def _expect_the_same(task: Task, marker: Marker, count: int, options: SinkOptions) -> None:
    if marker.run == task.run and marker.write != task.write:
        # A run does not run a batch twice.
        raise SinkError(
            f"{task} was written by another write of the same batch, and its rows would be taken for written: give "
            "each write of foreachBatch a name of its own by the option sinkName"
        )
    if marker.rows is not None and marker.rows != count and options.fail_on_replay_mismatch:
        raise SinkError(
            f"{task} has {count} rows now, and wrote {marker.rows} when it ran before: the batch is not divided into "
            "tasks as it was then, or what computes it is not deterministic. Some rows would be missing or double. "
            "Restart with the query, the number of partitions and the settings of that time until this batch is done; "
            "or accept what was written by the option failOnReplayMismatch=false"
        )


def _lost(task: Task, options: SinkOptions) -> SinkError:
    return SinkError(
        f"{task}: nobody knows whether its rows were written before. Its markers are gone (group "
        f"{batch_place(task.owner).group}, topic {options.marker_topic}): brokers forget them when a query is down for "
        "longer than offsets.retention.minutes, and there are none where the query was not written exactly once "
        f"until now. See whether the topic holds rows of batch {task.batch}; then restart once with the option "
        "failOnLostMarkers=false, which writes them"
    )


def _explained(error: KafkaError, task: Task, options: SinkOptions) -> SinkError:
    name = task.transactional_id(options.transactional_id_prefix)
    if error.code in FENCED:
        return SinkError(
            f"{task} was fenced: somebody else took over the transactional id {name}. Another attempt at this task, or "
            "another run of the query, goes on in its place; if two queries share a transactionalIdPrefix, give each "
            f"its own ({error})"
        )
    if error.code is ErrorCode.INVALID_TRANSACTION_TIMEOUT:
        return SinkError(
            f"the brokers refuse a transaction of {options.client['transaction.timeout.ms']} ms: set "
            "kafka.transaction.timeout.ms to their transaction.max.timeout.ms or less"
        )
    return SinkError(f"{task} could not be written under the transactional id {name}: {error}")
