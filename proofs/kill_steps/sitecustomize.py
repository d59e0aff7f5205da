"""Strikes processes of a Spark query at named steps of the sink, from outside of the product's code.

Every Python of the query loads this module by itself, as its PYTHONPATH begins with this directory. It wraps functions
of the sink when their modules are imported. Where a step is reached that the plan names (a file, PENSTOCK_KILL_PLAN),
the first process to take the plan strikes its victim:

- worker: this very process.
- driver: Spark's JVM, the Python that started it, and this process.
- zombie: the same three, only stopped; whoever reads the plan that was taken may let them go on.

PENSTOCK_PLANTED_BUG=rewrite makes tasks write whatever their markers say: what the proof must notice.
"""

import functools
import importlib.abc
import importlib.machinery
import json
import os
import signal
import sys
from pathlib import Path

PLAN = Path(os.environ.get("PENSTOCK_KILL_PLAN", "/nonexistent"))
TAKEN = PLAN.with_suffix(".taken")


def reach(step):
    try:
        plan = json.loads(PLAN.read_text())
        if plan["step"] != step:
            return
        claim = PLAN.with_suffix(f".{os.getpid()}")
        PLAN.rename(claim)  # of several processes that are here, one has it
    except (FileNotFoundError, json.JSONDecodeError):
        return
    pids = victims(plan["victim"])
    claim.write_text(json.dumps({**plan, "pids": pids}))
    claim.rename(TAKEN)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP if plan["victim"] == "zombie" else signal.SIGKILL)


def victims(kind):
    """Of a worker's ancestors the first is Spark's daemon, the second the JVM, the third the driver's Python."""
    me = os.getpid()
    if kind == "worker":
        return [me]
    jvm = parent(parent(me))
    return [jvm, parent(jvm), me]


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def around(owner, name, before=None, after=None):
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*arguments, **named):
        if before:
            reach(before)
        result = original(*arguments, **named)
        if after:
            reach(after)
        return result

    setattr(owner, name, wrapped)


def writing(module):
    around(module.TopicWriter, "init", "before fencing", "after fencing")
    around(module.TopicWriter, "begin", before="marker read")
    around(module.TopicWriter, "write", after="rows gathered")


def blocking(module):
    around(module.Producer, "send_offsets", "rows in the log", "marker in the transaction")
    around(module.Producer, "commit", after="committed")
    original = module.Client._carry_out

    def carry_out(self, effect, listener):
        if getattr(getattr(effect, "message", None), "committed", False):  # EndTxn, to commit
            ticket = self._begin(effect)
            while any(link.outgoing or link.waiting for link in self._links.values()):
                self._pump(1_000)
            reach("commit sent")
            while not ticket.done:
                self._pump(None)
            return ticket.result()
        return original(self, effect, listener)

    module.Client._carry_out = carry_out


def exactly_once(module):
    around(module, "_skip", "before skipping", "skipped")
    if os.environ.get("PENSTOCK_PLANTED_BUG") == "rewrite":
        module.Ledger = type("Forgetful", (module.Ledger,), {"read": lambda self, place, stable: module.Marker(0)})


def markers(module):
    around(module.Ledger, "commit", "before the batch marker", "after the batch marker")


WRAPPED = {
    "penstock.columnar.writing": writing,
    "penstock.wire.blocking": blocking,
    "penstock.pipeline.sink.exactly_once": exactly_once,
    "penstock.pipeline.sink.markers": markers,
}


class Wrapper(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        wrap = WRAPPED.get(name)
        spec = importlib.machinery.PathFinder.find_spec(name, path) if wrap else None
        if spec is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            wrap(module)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Wrapper())
