"""`penstock version`: what is installed, for bug reports."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version

import penstock
from penstock.cli.options import add_format
from penstock.cli.output import emit, fields

PROTOCOL = "Apache Kafka 4.3"
LIBRARIES = ["confluent-kafka", "uvloop", "cramjam", "fastcrc", "msgspec"]


def configure(parser: argparse.ArgumentParser) -> None:
    add_format(parser)
    parser.set_defaults(handler=show)


def show(args: argparse.Namespace) -> None:
    found = {"penstock": penstock.__version__, "protocol": PROTOCOL, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    emit(args, found, lambda: fields(found))
