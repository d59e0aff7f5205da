"""`penstock dump`: the files of a data directory as text or JSON lines. It only reads, and needs no broker."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import Any

from penstock.cli.failures import Failure
from penstock.cli.options import add_format

HELP = """\
files: segments (.log), offset, time and transaction indexes, producer snapshots, checksums (.sums), metadata snapshots
and bootstrap.checkpoint, the checkpoints, partition.metadata, quorum-state, meta.properties. A directory: all of it.
The records of __consumer_offsets, __transaction_state, __share_group_state and __cluster_metadata are decoded.

  penstock dump penstock-data/1/data/orders-0/00000000000000000000.log --records
  penstock dump penstock-data/1/data/__cluster_metadata-0 --records --format json

exit code 1 where a batch, an index or a snapshot is damaged."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = HELP
    parser.add_argument("path", nargs="+", help="files, or directories of a partition")
    parser.add_argument("-r", "--records", action="store_true", help="the records inside the batches too")
    parser.add_argument("--raw", action="store_true", help="keys and values as they are, internal topics too")
    parser.add_argument(
        "--from", type=int, default=0, dest="first", metavar="OFFSET", help="from the batch with this offset"
    )
    parser.add_argument("-n", "--count", type=int, metavar="N", help="at most N entries of each file")
    add_format(parser)
    parser.set_defaults(handler=dump)


def dump(args: argparse.Namespace) -> int:
    from penstock.cli.dump_files import Options, entries

    options = Options(records=args.records, raw=args.raw, first_offset=args.first)
    damaged = False
    for path in _files(args.path):
        if args.format == "text":
            print(f"{path}:")
        for number, entry in enumerate(entries(path, options)):
            if args.count is not None and number >= args.count:
                break
            damaged |= "damage" in entry
            _print(args, path, entry)
    return 1 if damaged else 0


def _files(paths: list[str]) -> Iterator[str]:
    from penstock.cli.dump_files import is_known

    for path in paths:
        if os.path.isdir(path):
            found = [os.path.join(path, name) for name in sorted(os.listdir(path)) if is_known(name)]
            if not found:
                raise Failure(
                    f"there is nothing to dump in {path!r}", "name a partition's directory or one of its files"
                )
            yield from found
        elif not os.path.exists(path):
            raise Failure(f"there is no file {path!r}")
        elif not is_known(os.path.basename(path)):
            raise Failure(f"{path!r} is none of the files of a data directory", "`penstock dump --help` lists them")
        else:
            yield path


def _print(args: argparse.Namespace, path: str, entry: dict[str, Any]) -> None:
    if args.format == "json":
        import msgspec

        print(msgspec.json.encode({"file": path, **entry}).decode())
        return
    records = entry.pop("records", None)
    print("  " + " ".join(f"{name}={_text(value)}" for name, value in entry.items() if value is not None))
    for record in records or ():
        print("    " + " ".join(f"{name}={_text(value)}" for name, value in record.items()))


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + " ".join(f"{k}={_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_text(v) for v in value) + "]"
    if isinstance(value, str) and (not value or any(c.isspace() for c in value)):
        return repr(value)
    return "null" if value is None else str(value)
