"""`penstock tail`: what arrives in topics, with where and when, in colour on a terminal."""

from __future__ import annotations

import argparse
import os
import sys

from penstock.cli.consume import run, say_where
from penstock.cli.options import add_client
from penstock.cli.record_format import Printer, compile_format

PLAIN = r"%d{strftime[%T]} %t-%p@%o %k %v\n"
COLOURED = "\x1b[2m%d{strftime[%T]}\x1b[0m \x1b[36m%t-%p\x1b[0m\x1b[2m@%o\x1b[0m \x1b[33m%k\x1b[0m %v\\n"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", nargs="+")
    parser.add_argument("-o", "--offset", metavar="PLACE", default="end", help="where to begin (end), as for consume")
    parser.add_argument("-n", "--count", type=int, metavar="N", help="stop after N records")
    parser.add_argument("-p", "--partition", type=int, action="append", help="only this partition; may be repeated")
    parser.add_argument("--filter", action="append", default=[], metavar="WHAT=GLOB", help="as for consume")
    add_client(parser)
    parser.set_defaults(handler=tail, group=None, exit=False, uncommitted=False)


def tail(args: argparse.Namespace) -> None:
    say_where(args)
    run(args, _printer(args))


def _printer(args: argparse.Namespace) -> Printer:
    if args.format == "json":
        return compile_format("json")
    coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return compile_format(COLOURED if coloured else PLAIN, b"-")
