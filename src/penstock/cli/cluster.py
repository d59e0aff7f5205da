"""`penstock cluster`: who is in the cluster."""

from __future__ import annotations

import argparse

from penstock.cli.options import add_client, make_admin
from penstock.cli.output import emit, fields, table


def configure(parser: argparse.ArgumentParser) -> None:
    add_client(parser)
    parser.set_defaults(handler=show)


def show(args: argparse.Namespace) -> None:
    with make_admin(args) as admin:
        found = admin.cluster()

    def text() -> None:
        fields({"cluster id": found.cluster_id, "controller": found.controller_id})
        print()
        table(["BROKER", "HOST", "PORT", "RACK"], [(b.id, b.host, b.port, b.rack) for b in found.brokers])

    emit(args, found, text)
