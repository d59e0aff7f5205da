"""What failed, why, and what to do next."""

from __future__ import annotations

import json
import sys


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


def explain(exc: Exception) -> Failure | None:
    """A failure for what a client, a file or the system reports; None for what is our own mistake."""
    if isinstance(exc, OSError):
        where = f" {exc.filename!r}" if exc.filename else ""
        return Failure(f"cannot use{where}: {exc.strerror or exc}")
    if "penstock.client.errors" not in sys.modules:
        return None
    from penstock.client.errors import ClientError

    return Failure(str(exc), _hint(exc)) if isinstance(exc, ClientError) else None


def _hint(exc: Exception) -> str | None:
    from penstock.client import errors

    hints: list[tuple[type[Exception], str]] = [
        (errors.BrokerUnreachable, "is a broker running there? `penstock up` starts one; -b HOST:PORT asks another"),
        (errors.TopicNotFound, "`penstock topic ls` lists the topics, `penstock topic create NAME` makes one"),
        (errors.TopicExists, "`penstock topic describe NAME` shows it, `penstock topic alter NAME` changes it"),
        (errors.GroupNotFound, "`penstock group ls` lists the groups"),
    ]
    login = "or authenticate with -X sasl.username=... -X sasl.password=..."
    by_code = {
        29: f"this user may not use the topic: ask for an ACL, {login}",
        30: f"this user may not use the group: ask for an ACL, {login}",
        31: f"this user may not do that in the cluster: ask for an ACL, {login}",
        38: "a cluster cannot keep more copies than it has brokers; `penstock cluster` counts them",
        68: "the group has members: stop its consumers first; `penstock group members GROUP` lists them",
        86: "a member of the group reads that topic: stop its consumers first",
    }
    for kind, text in hints:
        if isinstance(exc, kind):
            return text
    return by_code.get(getattr(exc, "code", 0))
