"""The fuzzer for as long as wanted: `python -m tests.fuzz.run --seconds 600 --seed 7`.

The seed is printed; the same seed sends the same frames (apart from topic ids and times, which a broker gives anew).
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.fuzz.decoders import fuzz_decoders
from tests.fuzz.live import fuzz_broker
from tests.fuzz.report import Finding

FRAMES_MAX = 50_000_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each part (60)")
    parser.add_argument("--seed", type=int, default=None, help="by chance where it is not given")
    parser.add_argument("--part", choices=["decoders", "broker", "both"], default="both")
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else random.randrange(2**32)
    say(f"seed {seed}")
    try:
        if args.part != "broker":
            say(f"decoders: {fuzz_decoders(seed, args.seconds, FRAMES_MAX)} frames, nothing found")
        if args.part != "decoders":
            with tempfile.TemporaryDirectory(prefix="penstock-fuzz-") as directory:
                frames = fuzz_broker(Path(directory), seed, args.seconds, FRAMES_MAX)
            say(f"broker: {frames} frames, nothing found")
    except Finding as finding:
        say(f"FOUND with seed {seed}: {finding}")
        return 1
    return 0


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
