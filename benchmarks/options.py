"""What a comparison of servers is asked for on its command line: rows, servers, rounds, full or quick."""

import argparse
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass

MAX_ROUNDS = 50
COMPARED = ("kafka", "penstock")


@dataclass(frozen=True)
class Choice:
    """What there is to choose from. A full run has every row, all that are compared, and `full_rounds` at least."""

    description: str
    rows: Collection[str]
    servers: Collection[str]
    full_rounds: int
    compared: Sequence[str] = COMPARED

    def parse(self, arguments: list[str]) -> argparse.Namespace:
        parser = self._parser()
        options = parser.parse_args(arguments)
        options.rounds = options.rounds or (1 if options.quick else self.full_rounds)
        options.servers = options.servers.split(",")
        options.rows = set(options.only.split(",")) if options.only else set(self.rows)
        if not 1 <= options.rounds <= MAX_ROUNDS:
            parser.error(f"--rounds is 1 to {MAX_ROUNDS}")
        if unknown := sorted(options.rows - set(self.rows)):
            parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(self.rows)}")
        if unknown := sorted(set(options.servers) - set(self.servers)):
            parser.error(f"no such server: {', '.join(unknown)}; there are {', '.join(self.servers)}")
        if options.publish and not self._is_thorough(options):
            parser.error(f"--publish needs {', '.join(self.compared)}, {self.full_rounds} rounds, and is not quick")
        return options

    def is_full(self, options: argparse.Namespace) -> bool:
        return options.rows == set(self.rows) and self._is_thorough(options)

    def _is_thorough(self, options: argparse.Namespace) -> bool:
        whole = options.servers == list(self.compared) and not options.quick
        return bool(whole and options.rounds >= self.full_rounds)

    def _parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(description=self.description)
        parser.add_argument("--rounds", type=int, help=f"how often each is measured (default {self.full_rounds})")
        parser.add_argument("--only", help=f"rows, separated by commas: {', '.join(self.rows)}")
        parser.add_argument("--servers", default=",".join(self.compared), help=f"which of {', '.join(self.servers)}")
        parser.add_argument("--quick", action="store_true", help="short loads, one round unless --rounds is given")
        parser.add_argument("--publish", action="store_true", help="with --only: write those rows beside the others")
        return parser


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
