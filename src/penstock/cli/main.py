"""The entry: finds the command, imports its module, parses, runs, and turns whatever goes wrong into a text and an
exit code.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shlex
import sys
from collections.abc import Sequence

import penstock
from penstock.cli.failures import Failure, explain, report

COMMANDS: dict[str, dict[str, str]] = {
    "Run": {
        "up": "start a broker here, ready for clients in a moment",
        "broker": "run one broker from a server.properties file",
    },
    "Data": {
        "produce": "send records from arguments, lines, or JSON lines",
        "consume": "read records from anywhere in a topic, in any format",
        "tail": "follow what arrives in topics",
    },
    "Pipelines": {
        "pipeline": "run, draw, list, stop and test pipelines on Spark",
        "load": "load topics into Parquet, Delta or Iceberg tables, and back",
        "table": "serve a compacted topic's current values, and look them up",
        "sql": "ask topics in SQL: history, live tail, and AS OF a time",
    },
    "Administration": {
        "topic": "list, create, describe, alter, trim and delete topics",
        "group": "list and describe groups, watch lag, reset offsets",
        "txn": "list and describe transactions, abort one that hangs",
        "config": "get, set and unset configurations of topics, brokers, groups",
        "cluster": "whether the cluster is well: brokers, partitions, the metadata quorum",
        "partition": "move partitions to other brokers, elect leaders",
        "node": "cordon, drain and forget brokers",
    },
    "Tools": {
        "bench": "measure throughput and latency of a cluster",
        "sim": "simulate a cluster under faults, by a seed",
        "dump": "show segments, indexes, snapshots and checkpoints as text or JSON",
        "completion": "a completion script for bash, zsh or fish",
        "version": "versions of Penstock and of what it stands on",
    },
}
EXAMPLES = """\
Ten seconds to a running broker:
  penstock up                            # in one terminal
  penstock produce orders 'hello'        # in another
  penstock consume orders -o start

`penstock COMMAND --help` tells more. -b HOST:PORT or PENSTOCK_BOOTSTRAP_SERVERS chooses the cluster
(localhost:9092)."""
_SECRET = re.compile(r"^(.*?(?:password|secret|token|jaas|oauthbearer|ssl[^=]*(?:key|pem))[^=]*)=.*", re.DOTALL)
"""KEY=VALUE whose value nobody else is to read, by the names of librdkafka and of Kafka"""


def main(argv: Sequence[str] | None = None) -> int:
    if sys.stderr is None:
        # It was closed: what is said there must not go to stdout instead, nor into a file that gets its number.
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # for as long as the process lives
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        if arguments[1:2] and arguments[0] == "help":
            return _guarded([arguments[1], "--help"])
        print(overview(), file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version"):
        print(f"penstock {penstock.__version__}")
        return 0
    if arguments[0].startswith("-"):
        print(_misplaced(arguments), file=sys.stderr)
        return 2
    if arguments[0] not in names():
        print(_unknown(arguments[0]), file=sys.stderr)
        return 2
    return _guarded(arguments)


def names() -> list[str]:
    return [name for group in COMMANDS.values() for name in group]


def overview() -> str:
    lines = ["usage: penstock COMMAND ...", "", "An event-streaming platform that speaks Apache Kafka's protocol.", ""]
    for title, commands in COMMANDS.items():
        lines += [f"{title}:", *[f"  {name:<12}{summary}" for name, summary in commands.items()], ""]
    return "\n".join([*lines, EXAMPLES])


def build(name: str) -> argparse.ArgumentParser:
    """The parser of one command, with its module imported."""
    module = importlib.import_module(f"penstock.cli.{name}")
    summary = next(group[name] for group in COMMANDS.values() if name in group)
    parser = argparse.ArgumentParser(
        prog=f"penstock {name}",
        description=summary[0].upper() + summary[1:] + ".",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.configure(parser)
    return parser


def _guarded(arguments: list[str]) -> int:
    as_json = "--format=json" in arguments or "json" in arguments[1:]
    args: argparse.Namespace | None = None
    try:
        parser = build(arguments[0])
        args = _parsed(parser, _join_negatives(arguments[1:]))
        as_json = getattr(args, "format", "text") == "json"
        handler = getattr(args, "handler", None)
        if handler is None:
            parser.print_help(sys.stderr)
            return 2
        code = int(handler(args) or 0)
        sys.stdout.flush()
        return code
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has seen enough. Nothing may be written at exit either, or Python complains.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Failure as failure:
        report(failure, as_json=as_json)
        return failure.exit_code
    except Exception as exc:
        return _explained(exc, args, as_json=as_json)


def _explained(exc: Exception, args: argparse.Namespace | None, *, as_json: bool) -> int:
    """Brokers may be asked for the cause: Ctrl-C ends that, too."""
    try:
        failure = explain(exc, args)
    except KeyboardInterrupt:
        return 130
    if failure is None:
        raise exc
    report(failure, as_json=as_json)
    return failure.exit_code


def _parsed(parser: argparse.ArgumentParser, arguments: list[str]) -> argparse.Namespace:
    """What a command is about may also come behind its options, as in `produce orders -k 7 one`; argparse can do that
    for commands without subcommands alone. An option that an action does not know is the action's error: argparse would
    show how the command is used, not the action."""
    if not parser._subparsers:
        return parser.parse_intermixed_args(arguments)
    args, unknown = parser.parse_known_args(arguments)
    if unknown:
        _action(parser, arguments).error(f"unrecognized arguments: {' '.join(unknown)}")
    return args


def _action(parser: argparse.ArgumentParser, arguments: list[str]) -> argparse.ArgumentParser:
    """The parser of the action that these arguments name."""
    actions = next(one.choices for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    return next((actions[one] for one in arguments if one in actions), parser)


def _join_negatives(arguments: list[str]) -> list[str]:
    """`--to -10` and `--at -1h` as one argument each: argparse would take the value for an option."""
    joined: list[str] = []
    for argument in arguments:
        before = joined[-1] if joined else ""
        if argument[:1] == "-" and argument[1:2].isdigit() and before[:1] == "-" and "=" not in before:
            joined[-1] = f"{before}={argument}" if before.startswith("--") else before + argument
        else:
            joined.append(argument)
    return joined


def _misplaced(arguments: list[str]) -> str:
    """An option in front of the command."""
    at = next((i for i, one in enumerate(arguments) if one in names()), None)
    words = ["COMMAND", "...", *arguments] if at is None else [*arguments[at:], *arguments[:at]]
    shown = shlex.join(_SECRET.sub(r"\1=...", word) for word in words)
    return f"penstock: options go behind the command: `penstock {shown}`"


def _unknown(name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name, names(), 1)
    hint = f"; did you mean `penstock {close[0]}`?" if close else "; `penstock --help` lists them"
    return f"penstock: there is no command {name!r}{hint}"


if __name__ == "__main__":
    sys.exit(main())
