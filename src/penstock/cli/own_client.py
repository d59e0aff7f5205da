"""Our own client for commands that ask what confluent-kafka cannot."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.cli.failures import Failure
from penstock.cli.options import check_reachable, client_config
from penstock.cli.quorum import NoController, has_controller

if TYPE_CHECKING:
    from penstock.wire.blocking import Client


@contextmanager
def own_client(args: argparse.Namespace) -> Iterator[Client]:
    """A refusal that nobody inside it explains is told as it is."""
    from penstock.base.errors import ErrorCode, KafkaError
    from penstock.wire.blocking import Client
    from penstock.wire.errors import InvalidSecurity
    from penstock.wire.security import parse

    check_reachable(args.bootstrap_server)
    try:
        with Client(args.bootstrap_server, security=parse(client_config(args))) as client:
            yield client
    except KafkaError as error:
        if error.code in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION) and not has_controller(args):
            raise NoController from None
        raise Failure(str(error)) from None
    except InvalidSecurity as error:
        raise Failure(str(error)) from None
