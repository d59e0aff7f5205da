"""`penstock topic`: everything about topics."""

from __future__ import annotations

import argparse
import fnmatch
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from penstock.cli.bounds import Bounds
from penstock.cli.failures import Failure, Usage
from penstock.cli.offsets import parse_place
from penstock.cli.options import add_dry_run, add_yes, confirm, make_admin, pairs, subcommand
from penstock.cli.output import emit, fields, note, table

if TYPE_CHECKING:
    from penstock.client import Admin, TopicInfo, TopicPartition


def configure(parser: argparse.ArgumentParser) -> None:
    sub = parser.add_subparsers(metavar="ACTION", title="actions")
    ls = subcommand(sub, "ls", "list topics", list_topics, aliases=["list"])
    ls.add_argument("pattern", nargs="*", help="names or globs, such as 'orders*'")
    ls.add_argument("-i", "--internal", action="store_true", help="the internal topics too")

    create = subcommand(sub, "create", "create topics", create_topics)
    create.add_argument("topic", nargs="+")
    create.add_argument("-p", "--partitions", type=int, default=-1, help="number of partitions (the broker's default)")
    create.add_argument("-r", "--replication-factor", type=int, default=-1, help="copies (the broker's default)")
    create.add_argument(
        "-c", "--config", metavar="KEY=VALUE", action="append", default=[], help="such as retention.ms=60000"
    )
    create.add_argument("--if-not-exists", action="store_true", help="an existing topic is no error")
    add_dry_run(create)

    describe = subcommand(
        sub, "describe", "partitions, leaders, copies, offsets and changed configurations", describe_topics
    )
    describe.add_argument("topic", nargs="+")

    alter = subcommand(sub, "alter", "change configurations or add partitions", alter_topic)
    alter.add_argument("topic")
    alter.add_argument("-s", "--set", metavar="KEY=VALUE", action="append", default=[], help="set a configuration")
    alter.add_argument("-u", "--unset", metavar="KEY", action="append", default=[], help="back to the default")
    alter.add_argument("-p", "--partitions", type=int, help="raise the number of partitions to this")
    add_dry_run(alter)

    config = subcommand(sub, "config", "show configurations", show_config)
    config.add_argument("topic")
    config.add_argument("key", nargs="*", help="only these, or globs such as 'retention*'")
    config.add_argument("-a", "--all", action="store_true", help="the defaults too")

    partitions = subcommand(sub, "partitions", "show partitions, or raise their number", show_partitions)
    partitions.add_argument("topic")
    partitions.add_argument("--total", type=int, metavar="N", help="raise the number of partitions to N")
    add_dry_run(partitions)

    delete = subcommand(sub, "delete", "delete topics and all their records", delete_topics, aliases=["rm"])
    delete.add_argument("topic", nargs="+")
    delete.add_argument("--if-exists", action="store_true", help="a missing topic is no error")
    add_yes(delete)
    add_dry_run(delete)

    trim = subcommand(sub, "trim", "delete the oldest records", trim_topic)
    trim.add_argument("topic")
    trim.add_argument(
        "-o", "--before", required=True, metavar="OFFSET", help="end, a number, -10 (keep ten), or a time @-1h"
    )
    trim.add_argument("-p", "--partition", type=int, action="append", help="only this partition")
    add_yes(trim)
    add_dry_run(trim)

    offsets = subcommand(sub, "offsets", "first and end offset of each partition", show_offsets)
    offsets.add_argument("topic", nargs="+")
    offsets.add_argument(
        "--at", metavar="TIME", help="also the first offset at or after a time, such as -1h or 2026-01-01"
    )


def list_topics(args: argparse.Namespace) -> None:
    with make_admin(args) as admin:
        found = admin.topics(internal=args.internal)
    if args.pattern:
        found = [t for t in found if any(fnmatch.fnmatchcase(t.name, p) for p in args.pattern)]
    listed = [
        {
            "name": t.name,
            "partitions": len(t.partitions),
            "replication_factor": t.replication_factor,
            "internal": t.internal,
        }
        for t in found
    ]
    emit(args, listed, lambda: table(["TOPIC", "PARTITIONS", "REPLICAS"], [list(t.values())[:3] for t in listed]))


def create_topics(args: argparse.Namespace) -> None:
    config = pairs(args.config, "the configuration")
    with make_admin(args) as admin:
        from penstock.client import TopicExists

        made = []
        for name in args.topic:
            try:
                admin.create_topic(name, args.partitions, args.replication_factor, config, dry_run=args.dry_run)
                made.append(name)
            except TopicExists:
                if not args.if_not_exists:
                    raise
                note(f"{name} exists already")
    verb = "would create" if args.dry_run else "created"
    emit(args, {"created": made, "dry_run": args.dry_run}, lambda: print("\n".join(f"{verb} {n}" for n in made)))


def describe_topics(args: argparse.Namespace) -> None:
    with make_admin(args) as admin:
        topics = admin.describe_topics(args.topic)
        offsets = Bounds(admin, _led(topics))
        found = [_description(admin, topic, offsets) for topic in topics]

    def text() -> None:
        for i, topic in enumerate(found):
            if i:
                print()
            _print_description(topic)

    emit(args, found, text)
    offsets.check()


def _led(topics: Iterable[TopicInfo]) -> list[TopicPartition]:
    from penstock.client import TopicPartition

    return [TopicPartition(t.name, p.partition) for t in topics for p in t.partitions if p.leader is not None]


def _description(admin: Admin, topic: TopicInfo, offsets: Bounds) -> dict[str, Any]:
    changed = {c.name: c.value for c in admin.config("topic", topic.name) if not c.is_default and c.source == "topic"}
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "internal": topic.internal,
        "replication_factor": topic.replication_factor,
        "config": changed,
        "partitions": _partition_rows(topic, offsets),
    }


def _partition_rows(topic: TopicInfo, offsets: Bounds) -> list[dict[str, Any]]:
    from penstock.client import TopicPartition

    rows = []
    for p in topic.partitions:
        at = TopicPartition(topic.name, p.partition)
        row = {"partition": p.partition, "leader": p.leader, "replicas": p.replicas, "isr": p.isr}
        rows.append(row | {"start_offset": offsets.starts.get(at), "end_offset": offsets.ends.get(at)})
    return rows


def _print_description(topic: dict[str, Any]) -> None:
    config = ", ".join(f"{k}={v}" for k, v in topic["config"].items())
    fields(
        {
            "topic": topic["name"],
            "id": topic["topic_id"],
            "partitions": len(topic["partitions"]),
            "replicas": topic["replication_factor"],
            "config": config or None,
        }
    )
    print()
    _print_partitions(topic["partitions"])


def _print_partitions(rows: list[dict[str, Any]]) -> None:
    headers = ["PARTITION", "LEADER", "REPLICAS", "ISR", "START", "END", "RECORDS"]
    table(headers, [(*row.values(), _difference(row["start_offset"], row["end_offset"])) for row in rows])


def _difference(start: int | None, end: int | None) -> int | None:
    return end - start if start is not None and end is not None else None


def alter_topic(args: argparse.Namespace) -> None:
    changes = pairs(args.set, "the configuration")
    if not (changes or args.unset or args.partitions):
        raise Usage("nothing to change", "give --set KEY=VALUE, --unset KEY or --partitions N")
    with make_admin(args) as admin:
        if changes or args.unset:
            admin.alter_config("topic", args.topic, changes, args.unset, dry_run=args.dry_run)
        if args.partitions:
            admin.add_partitions(args.topic, args.partitions, dry_run=args.dry_run)
    result = {
        "topic": args.topic,
        "set": changes,
        "unset": args.unset,
        "partitions": args.partitions,
        "dry_run": args.dry_run,
    }
    emit(args, result, lambda: print(f"{'would alter' if args.dry_run else 'altered'} {args.topic}"))


def show_config(args: argparse.Namespace) -> None:
    from penstock.cli.config import print_configs

    with make_admin(args) as admin:
        print_configs(args, admin.config("topic", args.topic), args.key, everything=args.all)


def show_partitions(args: argparse.Namespace) -> None:
    with make_admin(args) as admin:
        if args.total is not None:
            admin.add_partitions(args.topic, args.total, dry_run=args.dry_run)
            verb = "would have" if args.dry_run else "has"
            result = {"topic": args.topic, "partitions": args.total, "dry_run": args.dry_run}
            emit(args, result, lambda: print(f"{args.topic} {verb} {args.total} partitions"))
            return
        topic = admin.topic(args.topic)
        offsets = Bounds(admin, _led([topic]))
        rows = _partition_rows(topic, offsets)
    emit(args, rows, lambda: _print_partitions(rows))
    offsets.check()


def delete_topics(args: argparse.Namespace) -> None:
    with make_admin(args) as admin:
        known = {t.name for t in admin.topics(internal=True)}
        missing = [name for name in args.topic if name not in known]
        if missing and not args.if_exists:
            raise Failure(
                f"there is no topic {', '.join(missing)}", "`penstock topic ls` lists them; nothing was deleted"
            )
        wanted = [name for name in args.topic if name in known]
        if wanted and not args.dry_run:
            confirm(args, f"Delete {', '.join(wanted)} and all records in {'it' if len(wanted) == 1 else 'them'}?")
            admin.delete_topics(wanted)
    verb = "would delete" if args.dry_run else "deleted"
    emit(args, {"deleted": wanted, "dry_run": args.dry_run}, lambda: print("\n".join(f"{verb} {n}" for n in wanted)))


def trim_topic(args: argparse.Namespace) -> None:
    place = parse_place(args.before)
    with make_admin(args) as admin:
        partitions = _partitions_of(admin, args.topic, args.partition)
        targets = place.resolve(admin, partitions)
        starts = admin.offsets(partitions, "earliest")
        doomed = sum(max(0, targets[t] - starts[t]) for t in partitions)
        if not args.dry_run:
            confirm(args, f"Delete {doomed} record(s) of {args.topic}?")
            targets = admin.delete_records(targets)
    rows = [{"topic": t.topic, "partition": t.partition, "before": starts[t], "after": targets[t]} for t in partitions]
    emit(
        args,
        rows,
        lambda: table(["TOPIC", "PARTITION", "FIRST BEFORE", "FIRST AFTER"], [list(r.values()) for r in rows]),
    )


def show_offsets(args: argparse.Namespace) -> None:
    place = parse_place(f"@{args.at}") if args.at else None
    with make_admin(args) as admin:
        partitions = [t for name in args.topic for t in _partitions_of(admin, name, None)]
        starts, ends = admin.offsets(partitions, "earliest"), admin.offsets(partitions)
        at = {} if place is None else place.resolve(admin, partitions)
    rows: list[dict[str, Any]] = []
    for t in partitions:
        row = {"topic": t.topic, "partition": t.partition, "start": starts[t], "end": ends[t]}
        rows.append(row | {"at": at[t]} if args.at else row)
    headers = ["TOPIC", "PARTITION", "START", "END", *(["AT"] if args.at else [])]
    emit(args, rows, lambda: table(headers, [list(r.values()) for r in rows]))


def _partitions_of(admin: Admin, topic: str, only: list[int] | None) -> list[TopicPartition]:
    from penstock.client import TopicPartition

    known = [p.partition for p in admin.topic(topic).partitions]
    for number in only or ():
        if number not in known:
            raise Failure(f"{topic} has no partition {number}", f"it has {len(known)}: 0 to {len(known) - 1}")
    return [TopicPartition(topic, n) for n in (only or known)]
