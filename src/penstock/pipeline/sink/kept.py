"""What a worker process keeps from one task to the next: connections, and with them a producer's identity and what is
known of topics. A small batch of a stream would spend more time on making them than on its rows.

Spark runs one task after another in a process; what a task uses nobody else does. After a failure nothing is kept: an
answer to what was sent may be on its way, and nobody else is to receive it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.base.errors import ErrorCode, KafkaError
from penstock.pipeline.settling import settle
from penstock.pipeline.sink.errors import SinkError
from penstock.pipeline.sink.options import SinkOptions
from penstock.pipeline.sink.output import open_client, open_writer
from penstock.wire import blocking

if TYPE_CHECKING:
    from penstock.columnar.writing import TopicWriter

KEPT_MAX = 4
"""of each kind: as many clusters and topics as one process may write to in turn."""

_clients: dict[Hashable, blocking.Client] = {}
_writers: dict[Hashable, tuple[blocking.Client, TopicWriter]] = {}


@contextmanager
def kept_client(options: SinkOptions) -> Iterator[blocking.Client]:
    key = _key(options)
    client = _clients.pop(key, None) or open_client(options)
    try:
        yield client
    except BaseException as error:
        client.close()
        _expect_answers(error, options)
        raise
    settle()
    _clients[key] = client
    if len(_clients) > KEPT_MAX:
        _clients.pop(next(iter(_clients))).close()


@contextmanager
def kept_writer(options: SinkOptions) -> Iterator[TopicWriter]:
    """Outside of transactions. What was handed to it is delivered when the block ends."""
    key = _key(options), options.topic, options.acks
    kept = _writers.pop(key, None)
    client, output = _opened(options) if kept is None else kept
    try:
        yield output
        output.flush()
    except BaseException as error:
        output.close(abandon=True)
        client.close()
        _expect_answers(error, options)
        raise
    settle()
    output.forget_topics()
    _writers[key] = client, output
    if len(_writers) > KEPT_MAX:
        oldest, _ = _writers.pop(next(iter(_writers)))
        oldest.close()


def _opened(options: SinkOptions) -> tuple[blocking.Client, TopicWriter]:
    client = open_client(options)
    return client, open_writer(client, options)


def _expect_answers(error: BaseException, options: SinkOptions) -> None:
    """Raises in its place where it says no more than that nobody answers."""
    if isinstance(error, KafkaError) and error.code is ErrorCode.NETWORK_EXCEPTION:
        raise SinkError(f"no broker answers at {options.bootstrap} ({error}): is the cluster running?") from error


def _key(options: SinkOptions) -> Hashable:
    return options.bootstrap, tuple(sorted(options.client.items())), options.security
