"""Where rows go: a client of the cluster, and a task's writer of topics upon it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pipeline.settling import keep_memory
from penstock.pipeline.sink.options import SinkOptions
from penstock.wire import blocking

if TYPE_CHECKING:
    from penstock.columnar.writing import TopicWriter


def open_client(options: SinkOptions) -> blocking.Client:
    name = options.client.get("client.id", "penstock")
    return blocking.Client(options.bootstrap, client_id=name, security=options.security)


def open_writer(client: blocking.Client, options: SinkOptions, transactional_id: str | None = None) -> TopicWriter:
    """Upon a client that the caller closes."""
    # Processes of the driver check options and commit markers, and never write a row: they do without numba.
    from penstock.columnar.writing import TopicWriter  # noqa: PLC0415 see above

    keep_memory()
    return TopicWriter(
        options.bootstrap,
        options.client,
        topic=options.topic,
        transactional_id=transactional_id,
        acks=options.acks,
        client=client,
    )
