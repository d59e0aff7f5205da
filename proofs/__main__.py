"""`make prove`: every part, or those named; a part that is proven for this commit is left out unless `--again`."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "proofs"
PARTS = [
    "fresh_clone",
    "conformance",
    "crash",
    "power_loss",
    "cluster_chaos",
    "cluster_cuts",
    "cluster_disk",
    "cluster_grow",
    "cluster_tools",
    "simulator_seeds",
    "simulator_racks",
    "adoption",
    "group_rebalance",
    "share_queue",
    "group_state",
    "transactional_copy",
    "share_kills",
    "exactly_once_sink",
    "table_lookups",
    "sql_engines",
    "bench",
    "bench_cluster",
    "spark_speed",
    "steady_load",
]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)}; all of them if none is named"
    )
    parser.add_argument("--again", action="store_true", help="also those that are proven for this commit already")
    args = parser.parse_args()
    unknown = sorted(set(args.parts) - set(PARTS))
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    failed = [part for part in args.parts or PARTS if not prove(part, args.again)]
    for part in failed:
        print(f"not shown: {part}", file=sys.stderr)
    return 1 if failed else 0


def is_shown(path: Path) -> bool:
    """For this commit; what was tried and not shown is tried again."""
    kept = json.loads(path.read_text()) if path.exists() else {}
    return bool(kept.get("shown")) and kept.get("commit") == commit()


def prove(part: str, again: bool) -> bool:
    path = RESULTS / f"{part.replace('_', '-')}.json"
    if not again and is_shown(path):
        print(f"{part}: shown for this commit already", file=sys.stderr)
        return True
    print(f"{part}: running", file=sys.stderr)
    started = time.monotonic()
    try:
        figures = importlib.import_module(f"proofs.{part}").run()
        shown = True
    except Exception as fault:
        figures, shown = {"fault": f"{type(fault).__name__}: {fault}"}, False
    record = {
        "part": part,
        "shown": shown,
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "seconds": round(time.monotonic() - started, 1),
        "figures": figures,
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=2) + "\n")
    print(f"{part}: {'shown' if shown else figures['fault']}", file=sys.stderr)
    return shown


def commit() -> str:
    return subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def machine() -> dict[str, object]:
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(pages * size / 2**30),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


if __name__ == "__main__":
    raise SystemExit(main())
