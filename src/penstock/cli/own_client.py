"""Our own client for commands that ask what confluent-kafka cannot."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.cli.failures import Failure
from penstock.cli.options import check_reachable, client_config

if TYPE_CHECKING:
    from penstock.wire.blocking import Client


@contextmanager
def own_client(args: argparse.Namespace) -> Iterator[Client]:
    """A refusal that nobody inside it explains is told as it is."""
    from penstock.base.errors import KafkaError
    from penstock.wire.blocking import Client
    from penstock.wire.errors import InvalidSecurity
    from penstock.wire.security import parse

    check_reachable(args.bootstrap_server)
    try:
        with Client(args.bootstrap_server, security=parse(client_config(args))) as client:
            yield client
    except (InvalidSecurity, KafkaError) as error:
        raise Failure(str(error)) from None
