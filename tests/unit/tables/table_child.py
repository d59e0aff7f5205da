"""A table in a process of its own, to be killed: a line for each transaction, which it begins when it is answered."""

from __future__ import annotations

import signal
import sys

from penstock.tables import Table, feed, follower
from penstock.tables.store import Store


def main() -> None:
    servers, topic, directory = sys.argv[1:]
    follower.TRANSACTION_RECORDS_MAX = 400
    feed.FETCH_PARTITION_BYTES_MAX = 4_000
    apply = Store.apply

    def told(self: Store, *arguments: object) -> None:
        sys.stdout.write("transaction\n")
        sys.stdout.flush()
        sys.stdin.readline()
        apply(self, *arguments)  # type: ignore[arg-type]  # passed on as they came

    Store.apply = told  # type: ignore[assignment, method-assign]  # told and done, in this process only
    with Table.open(servers, topic, directory):
        sys.stdout.write("loaded\n")
        sys.stdout.flush()
        signal.pause()


if __name__ == "__main__":
    main()
