"""`penstock table`: the current value of every key of a compacted topic, served over HTTP or asked once.

A table lives in DIR/TOPIC: its store, and while somebody follows the topic into it the file `owner`, which tells
`penstock table get` where to ask.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from penstock.cli.failures import Failure, Usage
from penstock.cli.options import Subparsers, check_reachable, client_config, subcommand
from penstock.cli.output import emit, is_json, note

if TYPE_CHECKING:
    from penstock.tables import Table

DIRECTORY_DEFAULT = "penstock-tables"
PORT_DEFAULT = 8084
KEY_FORMATS = ("utf8", "base64", "int32", "int64")
"""and each as windowed:FORMAT and session:FORMAT; spelled out here, for the help must not load the tables."""
VALUE_FORMATS = ("auto", "json", "utf8", "int32", "int64", "float64", "base64")
PROGRESS_S = 2.0
SERVE_HELP = """\
prints `ready: URL` on stdout when the tables hold their topics; Ctrl-C or SIGTERM stops it cleanly; a second start on
the same directory goes on where the first stopped. Until it is ready, look-ups are answered with 503 and the lag.

examples:
  penstock table serve accounts
  curl localhost:8084/tables/accounts/keys/alice
  curl 'localhost:8084/tables/accounts/keys?prefix=al&limit=10'
  curl localhost:8084/tables/accounts/get -d '{"keys": ["alice", "bob"]}'"""
GET_HELP = """\
asks the server that serves the table from the same directory, or the one at --url; where there is none, it brings the
store in the directory up to date itself, and looks there.

examples:
  penstock table get accounts alice
  penstock table get counts alice@1700000000000 --key-format windowed:utf8
  penstock table get accounts alice --url http://tables.example:8084"""


def configure(parser: argparse.ArgumentParser) -> None:
    subparsers = parser.add_subparsers(metavar="COMMAND")
    _configure_serve(subparsers)
    _configure_get(subparsers)


def _configure_serve(subparsers: Subparsers) -> None:
    parser = subcommand(subparsers, "serve", "serve tables over HTTP, up to date with their topics", serve)
    parser.epilog = SERVE_HELP
    parser.add_argument("topics", nargs="+", metavar="TOPIC", help="a compacted topic; each is a table")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1: this machine only)")
    parser.add_argument(
        "--port", type=int, default=PORT_DEFAULT, metavar="P", help=f"port ({PORT_DEFAULT}); 0 takes a free one"
    )
    _add_store(parser)


def _configure_get(subparsers: Subparsers) -> None:
    parser = subcommand(subparsers, "get", "the current value of a key", get)
    parser.epilog = GET_HELP
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("key", metavar="KEY", help="as text of the key format")
    parser.add_argument("--url", help="the server to ask")
    _add_store(parser)


def _add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dir", default=DIRECTORY_DEFAULT, help=f"where tables are kept, each in DIR/TOPIC (./{DIRECTORY_DEFAULT})"
    )
    names = [f"{around}{name}" for around in ("", "windowed:", "session:") for name in KEY_FORMATS]
    parser.add_argument(
        "--key-format", choices=names, default="utf8", metavar="FORMAT", help=f"{', '.join(KEY_FORMATS)} (utf8); "
        "windowed:FORMAT for windows of Kafka Streams, as KEY@START; session:FORMAT for sessions, as KEY@START-END",
    )  # fmt: skip
    parser.add_argument(
        "--value-format",
        choices=VALUE_FORMATS,
        default="auto",
        metavar="FORMAT",
        help=f"how values are shown: "
        f"{', '.join(VALUE_FORMATS)} (auto: JSON, or base64); what counts and sums write is int64",
    )


def serve(args: argparse.Namespace) -> int:
    if len(set(args.topics)) < len(args.topics):
        raise Usage("a topic is named twice")
    _check(args)
    with _explained(), contextlib.ExitStack() as stack:
        from penstock.tables.http_answers import Served
        from penstock.tables.key_formats import key_format
        from penstock.tables.service import is_local, listen
        from penstock.tables.service import serve as serve_tables
        from penstock.tables.value_formats import value_format

        _log_to_stderr()
        listening, url = listen(args.host, args.port)
        stack.callback(listening.close)
        if not is_local(listening.getsockname()[0]):
            note(f"anybody who reaches {args.host} may read: there is no authentication here")
        tables = {topic: stack.enter_context(_open(args, topic, wait_s=0)) for topic in args.topics}
        for table in tables.values():
            table.announce(url)
            _note_policy(table)
        note(f"serving {url}/tables, loading")
        formats = key_format(args.key_format), value_format(args.value_format)
        serve_tables({t: Served(table, *formats) for t, table in tables.items()}, listening, lambda: _ready(args, url))
    return 0


def get(args: argparse.Namespace) -> int:
    url = args.url or _announced(args)
    found = _ask(args, url) if url else _look_up(args)

    def text() -> None:
        value = found["value"]
        if isinstance(value, str) and found["content_type"] != "application/json":
            print(value)
        else:
            import msgspec

            print(msgspec.json.encode(value).decode())

    emit(args, found, text)
    return 0


def _ask(args: argparse.Namespace, url: str) -> dict[str, Any]:
    import json
    from urllib.error import HTTPError, URLError
    from urllib.request import urlopen

    formats = urlencode({"key_format": args.key_format, "value_format": args.value_format})
    target = f"{url.rstrip('/')}/tables/{quote(args.topic)}/keys/{quote(args.key, safe='')}?{formats}"
    try:
        with urlopen(target, timeout=args.timeout) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except HTTPError as error:
        try:
            message = json.load(error)["error"]["message"]
        except (ValueError, KeyError, TypeError):
            message = f"{url} answered with {error.code}, and is no server of tables"
        raise Failure(message) from None
    except (URLError, TimeoutError) as error:
        raise Failure(
            f"no answer from {url}: {getattr(error, 'reason', error)}",
            "is it the URL that `penstock table serve` told?",
        ) from None


def _look_up(args: argparse.Namespace) -> dict[str, Any]:
    _check(args)
    with _explained():
        import msgspec

        from penstock.tables.http_answers import entry_body
        from penstock.tables.http_parameters import Asked
        from penstock.tables.key_formats import key_format
        from penstock.tables.value_formats import value_format

        ask = Asked(key_format(args.key_format), value_format(args.value_format), {})
        key = ask.key_format.parse(args.key)
        with _open(args, args.topic, wait_s=0) as table:
            _await_loaded(table)
            entry = table.get(key)
        if entry is None:
            raise Failure(f"table {args.topic} has no key {args.key!r}")
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(entry_body(entry, ask)))
        return found


def _await_loaded(table: Table) -> None:
    """Says how far it is, now and then, where that takes a while."""
    from penstock.tables import NotReached

    while True:
        try:
            table.wait_until_ready(PROGRESS_S)
            return
        except NotReached:
            note(f"loading {table.topic}: {table.as_of().lag:,} records to go")


def _open(args: argparse.Namespace, topic: str, *, wait_s: float) -> Table:
    from penstock.tables import Table

    place = os.path.join(args.dir, topic)
    return Table.open(
        args.bootstrap_server,
        topic,
        place,
        wait_s=wait_s,
        timeout_ms=int(args.timeout * 1000),
        config=client_config(args),
    )


def _announced(args: argparse.Namespace) -> str | None:
    """The URL of who serves the table from this directory."""
    place = os.path.join(args.dir, args.topic)
    if not os.path.exists(os.path.join(place, "owner")):
        return None
    with _explained():
        from penstock.tables.owner import holder_of

        holder = holder_of(place)
        return holder.url if holder else None


def _check(args: argparse.Namespace) -> None:
    from penstock.wire.security import without

    others = without(client_config(args))
    if others:
        raise Usage(f"-X {next(iter(others))}: tables know security.protocol, sasl.* and ssl.*, and no other property")
    check_reachable(args.bootstrap_server)


def _ready(args: argparse.Namespace, url: str) -> None:
    print(f'{{"ready": "{url}"}}' if is_json(args) else f"ready: {url}", flush=True)


def _note_policy(table: Table) -> None:
    policy = table.settings.get("cleanup.policy", "compact")
    if "compact" not in policy:
        note(
            f"{table.topic} is not compacted (cleanup.policy={policy}): the table loses what retention removes; "
            f"`penstock topic alter {table.topic} --set cleanup.policy=compact` changes that"
        )


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%SZ"))
    handler.formatter.converter = time.gmtime  # type: ignore[union-attr]  # it was set a line above
    logging.getLogger("penstock.tables").addHandler(handler)
    logging.getLogger("penstock.tables").setLevel(logging.INFO)


@contextlib.contextmanager
def _explained() -> Any:
    """What tables refuse, as a failure of the command."""
    try:
        from penstock.base.errors import KafkaError
        from penstock.tables import TableError
    except ImportError as error:
        raise Failure(
            f"tables need {error.name}, which is not installed", "install them with: pip install 'penstock[tables]'"
        ) from None
    try:
        yield
    except (TableError, KafkaError, ValueError) as error:
        raise Failure(str(error)) from None
