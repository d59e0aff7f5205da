"""What failed, why, and what to do next."""

from __future__ import annotations

import argparse
import json
import sys

REQUEST_TIMED_OUT = 7
NO_CONTROLLER = (
    "brokers answer, but no active controller does: "
    "an election is under way, or no majority of the controllers is there"
)
WHO_IS_MISSING = "`penstock cluster` tells which brokers are missing; --timeout S waits longer"
_COPIES_MISSING = (
    "fewer copies are in sync than min.insync.replicas asks for: `penstock topic describe TOPIC` shows them, "
    "`penstock cluster` which brokers are missing"
)


class Failure(Exception):
    """A command could not do its work. `hint` is the next step."""

    def __init__(self, message: str, hint: str | None = None, exit_code: int = 1) -> None:
        super().__init__(message)
        self.hint = hint
        self.exit_code = exit_code


class Usage(Failure):
    """The arguments make no sense together."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint, exit_code=2)


def report(failure: Failure, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"error": str(failure), "hint": failure.hint}), file=sys.stderr)
        return
    print(f"penstock: {failure}", file=sys.stderr)
    if failure.hint:
        print(f"  {failure.hint}", file=sys.stderr)


def explain(exc: Exception, args: argparse.Namespace | None = None) -> Failure | None:
    """A failure for what a client, a file or the system reports; None for what is our own mistake. `args`: of the
    command, where there are any yet."""
    if isinstance(exc, OSError):
        where = f" {exc.filename!r}" if exc.filename else ""
        return Failure(f"cannot use{where}: {exc.strerror or exc}")
    if "penstock.client.errors" not in sys.modules:
        return None
    from penstock.client.errors import BrokerUnreachable, ClientError

    if not isinstance(exc, ClientError):
        return None
    waited = isinstance(exc, BrokerUnreachable) or exc.code == REQUEST_TIMED_OUT
    if waited and args is not None and hasattr(args, "bootstrap_server"):
        from penstock.cli.quorum import START_OTHERS, has_controller

        found = has_controller(args)
        if found is False:
            return Failure(f"{exc}; {NO_CONTROLLER}", START_OTHERS)
        if found:
            return Failure(str(exc), WHO_IS_MISSING)
    return Failure(str(exc), _hint(exc))


def _hint(exc: Exception) -> str | None:
    from penstock.client import errors

    hints: list[tuple[type[Exception], str]] = [
        (errors.BrokerUnreachable, "is a broker running there? `penstock up` starts one; -b HOST:PORT asks another"),
        (errors.TopicNotFound, "`penstock topic ls` lists the topics, `penstock topic create NAME` makes one"),
        (errors.TopicExists, "`penstock topic describe NAME` shows it, `penstock topic alter NAME` changes it"),
        (
            errors.OffsetsUnknown,
            "`penstock cluster` tells who is there; start others: `penstock broker --config DIR/<n>/server.properties`",
        ),
        (errors.GroupNotFound, "`penstock group ls` lists the groups"),
    ]
    login = "or authenticate with -X sasl.username=... -X sasl.password=..."
    by_code = {
        REQUEST_TIMED_OUT: WHO_IS_MISSING,
        5: "`penstock topic describe TOPIC` shows leaders, `penstock cluster` which brokers are missing",
        19: _COPIES_MISSING,
        20: _COPIES_MISSING,
        29: f"this user may not use the topic: ask for an ACL, {login}",
        30: f"this user may not use the group: ask for an ACL, {login}",
        31: f"this user may not do that in the cluster: ask for an ACL, {login}",
        38: "a topic cannot have more copies than there are brokers that take some: `penstock node ls` shows which are "
        "away or cordoned, `penstock node uncordon ID` lets one take copies again",
        68: "the group has members: stop its consumers first; `penstock group members GROUP` lists them",
        86: "a member of the group reads that topic: stop its consumers first",
        87: "a topic with cleanup.policy=compact takes no record without a key: give one by -k KEY, or with -K: where "
        "lines are key:value; `penstock topic config TOPIC` shows what else it asks of records",
    }
    for kind, text in hints:
        if isinstance(exc, kind):
            return text
    return by_code.get(getattr(exc, "code", 0))
