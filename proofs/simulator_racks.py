"""Three racks with 20 ms between them, in the simulator: one of them is lost, nothing acked is, and readers read from
the replica in their own rack.

In each run every rack has brokers, a producer and a reader; half-way one goes dark for good, with all that is in it.
The brokers and clients of the others go on, under faults of their own.
"""

from __future__ import annotations

import os
import time

from penstock.sim.run import simulate_racks
from proofs.simulator_seeds import EXAMPLES_MAX, summed, told

RACKS = 3
LATENCY_MS = 20


def run(seeds: int = 0, events: int = 0) -> dict[str, object]:
    seeds = seeds or int(os.environ.get("PENSTOCK_SIM_RACK_SEEDS", "60"))
    events = events or int(os.environ.get("PENSTOCK_SIM_RACK_EVENTS", "20000"))
    results = []
    for seed in range(1, seeds + 1):
        began_s = time.process_time()
        nodes = RACKS if seed % 2 else 2 * RACKS
        report = simulate_racks(seed, nodes, events, racks=RACKS, latency_ms=LATENCY_MS)
        results.append(told(report, time.process_time() - began_s))
    violated = [f"seed {one['seed']}: {text}" for one in results for text in one["violations"]]
    assert not violated, f"{len(violated)} violations: {'; '.join(violated[:EXAMPLES_MAX])}"
    lost = sum(one["injected"].get("rack", 0) for one in results)
    near, far = (sum(one[name] for one in results) for name in ("near", "far"))
    assert lost >= 0.9 * seeds, f"only {lost} of {seeds} runs lost a rack"
    assert near > 5 * far, f"{near} answers from the reader's rack, {far} across"
    return {
        "racks": RACKS,
        "latency_ms_one_way": LATENCY_MS,
        "seeds": f"1-{seeds}",
        "racks_lost": lost,
        "lost": 0,
        "answers_from_the_readers_rack": near,
        "answers_across_racks": far,
        "share_in_rack": round(near / (near + far), 4),
        "across_while_the_local_replica_was_in_sync": 0,
    } | summed(results)
