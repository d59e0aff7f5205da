"""`penstock sim`: whole clusters in simulation, one by its seed or many, with faults and a verdict."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from penstock.cli.failures import Usage
from penstock.cli.options import add_format
from penstock.cli.output import emit, note, table

if TYPE_CHECKING:
    from penstock.sim.run import Report

RACK_LATENCY_MS = 20
HELP = """\
a seed decides everything: the faults, their times, the network's delays, what clients do. The same
seed gives the same digest, on any machine. Exit code 1 where an invariant was violated.

  penstock sim --seed 7
  penstock sim --seeds 1-50 --events 10000
  penstock sim --seed 7 --racks 3 --rack-latency 20
  penstock sim --plant fsync-retry               # with a known bug put in, by a seed that finds it
  penstock sim --list-planted"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = HELP
    parser.add_argument("--seed", type=int, metavar="S", help="one run")
    parser.add_argument("--seeds", metavar="A-B", help="all runs from A to B")
    parser.add_argument("--nodes", type=int, default=3, metavar="N", help="brokers (3)")
    parser.add_argument("--events", type=int, default=10_000, metavar="E", help="events of a run, about (10000)")
    parser.add_argument("--racks", type=int, metavar="R", help="brokers and clients in R racks, one of them lost")
    parser.add_argument(
        "--rack-latency", type=int, metavar="MS", help=f"between two racks, one way ({RACK_LATENCY_MS})"
    )
    parser.add_argument(
        "--plant", metavar="BUG", help="put a known bug in; its runs have their own seed, size and faults"
    )
    parser.add_argument("--list-planted", action="store_true", help="the bugs that can be put in")
    add_format(parser)
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    if args.list_planted:
        return _list(args)
    _check(args)
    seeds = _seeds(args)
    results = [_one(args, seed) for seed in seeds]
    failed = [result["seed"] for result in results if result["verdict"] != "ok"]
    emit(args, results if len(results) > 1 else results[0], lambda: None)
    if len(results) > 1:
        note(f"{len(results)} runs, {len(failed)} with violations{': seeds ' if failed else ''}{_listed(failed)}")
    return 1 if failed else 0


def _check(args: argparse.Namespace) -> None:
    from penstock.sim.planted.registry import PLANTED

    if args.nodes < 1:
        raise Usage(f"--nodes {args.nodes}: at least 1")
    if args.events < 1:
        raise Usage(f"--events {args.events}: at least 1")
    if args.racks is not None and not 2 <= args.racks <= args.nodes:
        raise Usage(f"--racks {args.racks}: at least 2 and at most --nodes, {args.nodes}")
    if args.rack_latency is not None and args.racks is None:
        raise Usage(
            "--rack-latency is of a cluster in racks", f"penstock sim --racks 3 --rack-latency {args.rack_latency}"
        )
    if args.rack_latency is not None and args.rack_latency < 0:
        raise Usage(f"--rack-latency {args.rack_latency}: at least 0")
    if args.plant is not None and args.plant not in PLANTED:
        raise Usage(f"there is no planted bug {args.plant!r}", "penstock sim --list-planted shows them")


def _one(args: argparse.Namespace, seed: int) -> dict[str, Any]:
    from penstock.sim.planted.registry import PLANTED, run_with
    from penstock.sim.run import simulate_racks, simulate_seed

    began_s = time.process_time()
    if args.plant is not None:
        report = run_with(PLANTED[args.plant], seed)
    elif args.racks:
        latency_ms = RACK_LATENCY_MS if args.rack_latency is None else args.rack_latency
        report = simulate_racks(seed, args.nodes, args.events, racks=args.racks, latency_ms=latency_ms)
    else:
        report = simulate_seed(seed, args.nodes, args.events)
    result = _facts(report, report.events / max(time.process_time() - began_s, 1e-9))
    if args.format != "json":
        _show(result)
    return result


def _facts(report: Report, rate: float) -> dict[str, Any]:
    return {
        "seed": report.options.seed,
        "nodes": report.options.nodes,
        "events": report.events,
        "virtual_seconds": round(report.virtual_s, 3),
        "events_per_second": round(rate),
        "injected": report.injected,
        "acked": report.acked,
        "read": report.read,
        "read_in_rack": report.near,
        "read_across_racks": report.far,
        "operations": report.shape,
        "digest": report.digest,
        "verdict": "ok" if report.passed else "violated",
        "violations": [str(one) for one in report.violations],
    }


def _show(result: dict[str, Any]) -> None:
    injected = ", ".join(f"{count} x {kind}" for kind, count in result["injected"].items()) or "nothing"
    print(
        f"seed {result['seed']}: {result['verdict']}; {result['events']} events in {result['virtual_seconds']} s of "
        f"virtual time, {result['events_per_second']} a second; {result['acked']} records acked; "
        f"digest {result['digest']}"
    )
    print(f"  injected: {injected}")
    if result["read_in_rack"] or result["read_across_racks"]:
        near, far = result["read_in_rack"], result["read_across_racks"]
        print(f"  answers with records: {near} in the reader's rack, {far} across")
    for text in result["violations"]:
        print(f"  violated: {text}")
    sys.stdout.flush()


def _list(args: argparse.Namespace) -> int:
    from penstock.sim.planted.registry import PLANTED

    bugs = list(PLANTED.values())
    rows = [
        {"name": bug.name, "source": bug.source, "what": bug.what, "nodes": bug.nodes, "seed": bug.seed} for bug in bugs
    ]
    shown = [(one.name, one.seed, one.source, one.what) for one in bugs]
    emit(args, rows, lambda: table(["name", "seed", "source", "what"], shown))
    return 0


def _seeds(args: argparse.Namespace) -> list[int]:
    """Where none is given, that which finds the planted bug."""
    if args.plant is not None and args.seed is None and args.seeds is None:
        from penstock.sim.planted.registry import PLANTED

        return [PLANTED[args.plant].seed]
    if (args.seed is None) == (args.seeds is None):
        raise Usage("give one of --seed and --seeds", "penstock sim --seed 1")
    if args.seed is not None:
        return [args.seed]
    first, dash, last = args.seeds.partition("-")
    if not dash or not first.isdigit() or not last.isdigit() or int(first) > int(last):
        raise Usage(f"--seeds: {args.seeds!r} is not A-B")
    return list(range(int(first), int(last) + 1))


def _listed(seeds: list[int]) -> str:
    return ", ".join(map(str, seeds))
