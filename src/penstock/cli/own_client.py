"""Our own client for commands that ask what confluent-kafka cannot."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.cli.failures import WHO_IS_MISSING, Failure
from penstock.cli.options import check_reachable, client_config
from penstock.cli.quorum import NoController, has_controller

if TYPE_CHECKING:
    from penstock.base.errors import KafkaError
    from penstock.wire.blocking import Client


@contextmanager
def own_client(args: argparse.Namespace, timeout_s: float | None = None) -> Iterator[Client]:
    """Each talk ends within --timeout, or `timeout_s`. A refusal that nobody inside it explains is told as it is."""
    from penstock.base.errors import KafkaError

    check_reachable(args.bootstrap_server)
    try:
        with _client(args, args.timeout if timeout_s is None else timeout_s) as client:
            yield client
    except KafkaError as error:
        waited = is_silence(error)
        if waited and has_controller(args) is False:
            raise NoController from None
        raise Failure(str(error), WHO_IS_MISSING if waited else None) from None


def is_silence(error: KafkaError) -> bool:
    """Nobody answered, which says nothing of what was asked."""
    from penstock.base.errors import ErrorCode

    return error.code in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION)


def _client(args: argparse.Namespace, timeout_s: float) -> Client:
    from penstock.wire.blocking import Client
    from penstock.wire.security import parse

    security = parse(client_config(args))
    try:
        return Client(args.bootstrap_server, security=security, run_limit_ms=int(timeout_s * 1000))
    except ValueError as error:
        raise Failure(str(error), "name brokers by -b HOST:PORT,HOST:PORT") from None
