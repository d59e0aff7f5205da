"""A stateful query that is killed again and again while it writes to three brokers, which are killed as well: every
event comes out once, counted once.

The query numbers events by key (`exactly_once_query`). Its processes are struck at every named step of the sink
(`kill_steps`) and at moments that nobody chose: a Python worker alone, or the driver with its JVM. Some drivers are
only stopped, and go on when another one has taken their place. A broker that is killed comes back when the query has
gone on without it: it leads partitions and coordinates transactions as the others do. A reader of committed records
must then find each event exactly once, and for each key the counts 1, 2, 3, ... exactly once: what the state, the
batches and the topic make of it together.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from proofs.cluster_up import ClusterUp
from proofs.exactly_once_query import EVENTS_PER_BATCH

ROOT = Path(__file__).resolve().parent.parent

SOURCE, TOPIC = "events", "numbered"
PARTITIONS = 3
NODES = 3
KEYS = 37
PATIENCE_S = 240
DAEMON = b".daemon\0"
"""how the module's name ends that workers and what they are forked from run: Spark's, or that of our pipelines"""

TASK_STEPS = (
    "before fencing",
    "after fencing",
    "marker read",
    "rows gathered",
    "rows in the log",
    "marker in the transaction",
    "commit sent",
    "committed",
)
DRIVER_STEPS = ("before the batch marker", "after the batch marker")


@dataclass(frozen=True)
class Strike:
    victim: str
    step: str | None = None
    """None: at a moment of chance."""
    in_replay: bool = False
    """at once after the strike before it: the batch that failed then is run again, and struck again."""


def all_strikes(by_chance: int, brokers: int, chance: random.Random) -> list[Strike]:
    """Every step with every victim, then by chance. A driver that dies after a commit leaves something to skip."""
    planned = [Strike(victim, step) for step in TASK_STEPS + DRIVER_STEPS for victim in ("worker", "driver")]
    for step in ("before skipping", "skipped"):
        for victim in ("worker", "driver"):
            planned += [Strike("driver", "committed"), Strike(victim, step, in_replay=True)]
    planned += [Strike("zombie", step) for step in ("marker read", "rows in the log", "marker in the transaction")]
    planned += [Strike(chance.choice(("worker", "driver"))) for _ in range(by_chance)]
    # Not before one in a replay: what that is to skip is there only until the batch is run again.
    places = [at for at, one in enumerate(planned) if not one.in_replay]
    for at in sorted(chance.sample(places, brokers), reverse=True):
        planned.insert(at, Strike("broker"))
    return planned


class Query:
    """The query's processes, on one checkpoint."""

    def __init__(self, directory: Path, bootstrap: str, style: str) -> None:
        self.directory = directory
        self.checkpoint = directory / "checkpoint"
        self.plan = directory / "plan"
        self.starts = 0
        self._command = [sys.executable, "-m", "proofs.exactly_once_query", bootstrap, SOURCE, TOPIC]
        self._command += [str(self.checkpoint), style]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        places = [str(ROOT / "proofs" / "kill_steps"), str(ROOT), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(place for place in places if place),
            "PENSTOCK_KILL_PLAN": str(self.plan),
        }
        with (self.directory / "query.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        self.starts += 1

    def keep_running(self) -> None:
        """A driver that died, or gave up because its batch failed, is started again, as a supervisor would."""
        if self._process is None or self._process.poll() is not None:
            self.start()

    def processes(self) -> list[int]:
        """Those of all drivers that were started and live."""
        mark = f"PENSTOCK_KILL_PLAN={self.plan}".encode()
        return [pid for pid in _all_processes() if mark in _environment(pid).split(b"\0")]

    def strike(self, victim: str, chance: random.Random) -> bool:
        """One Python worker, or all of the driver; False where there is none just now."""
        assert self._process is not None
        alive = [pid for pid in self.processes() if DAEMON in _words(pid)]
        workers = [pid for pid in alive if DAEMON in _words(_parent(pid))]
        if victim == "worker":
            if workers:
                _signal(chance.choice(workers), signal.SIGKILL)
            return bool(workers)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        return True

    def batches_done(self) -> int:
        return _last(self.checkpoint / "commits") + 1

    def batches_planned(self) -> int:
        return _last(self.checkpoint / "offsets") + 1

    def events_planned(self) -> int:
        """Up to which event the batches go, the one that runs included."""
        last = _last(self.checkpoint / "offsets")
        if last < 0:
            return 0
        offsets = json.loads((self.checkpoint / "offsets" / str(last)).read_text().splitlines()[2])
        return sum(offsets[SOURCE].values())

    def end(self) -> None:
        for pid in self.processes():
            _signal(pid, signal.SIGKILL)
        if self._process is not None:
            self._process.wait()


class Events:
    """The source: events of many keys, numbered in all."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "log_level": 2})
        self.count = 0

    def send(self, count: int) -> None:
        for number in range(self.count, self.count + count):
            self._producer.produce(SOURCE, key=f"key-{number % KEYS}", value=str(number), partition=number % PARTITIONS)
        assert not self._producer.flush(60), "the source does not take events"
        self.count += count


def run(by_chance: int = 12, brokers: int = 8, seed: int = 1) -> dict[str, object]:
    """A stream in append mode with every strike, and one that foreachBatch writes with the steps around a commit."""
    chance = random.Random(seed)
    again = [Strike(victim, step) for step in TASK_STEPS[-4:] + DRIVER_STEPS for victim in ("worker", "driver")]
    return {
        "stream": under_fire(all_strikes(by_chance, brokers, chance), "stream", chance),
        "foreach_batch": under_fire(again, "foreach_batch", chance),
    }


def under_fire(strikes: list[Strike], style: str, chance: random.Random) -> dict[str, object]:
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(TemporaryDirectory(prefix="penstock-once-", ignore_cleanup_errors=True)))
        cluster = stack.enter_context(ClusterUp(scratch / "cluster", NODES))
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 2})
        for made in admin.create_topics([NewTopic(name, PARTITIONS, NODES) for name in (SOURCE, TOPIC)]).values():
            made.result(30)
        query = Query(scratch, cluster.bootstrap, style)
        stack.callback(query.end)
        return _under_fire(query, cluster, strikes, chance)


def _under_fire(query: Query, cluster: ClusterUp, strikes: list[Strike], chance: random.Random) -> dict[str, object]:
    events = Events(cluster.bootstrap)
    query.start()
    started = time.monotonic()
    for number, strike in enumerate(strikes, 1):
        if not strike.in_replay:
            done = query.batches_done()
            _until(query, events, lambda done=done: query.batches_done() > done, f"a batch before {strike}")
        print(f"{number}/{len(strikes)} {strike} at batch {query.batches_done()}", file=sys.stderr)
        if strike.victim == "broker":
            _strike_broker(query, events, cluster, chance)
        else:
            _strike(query, events, strike, chance)
    _until(query, None, lambda: query.events_planned() >= events.count, "the last event")
    _until(query, None, lambda: query.batches_done() >= query.batches_planned(), "the last batch")
    seconds = time.monotonic() - started
    query.end()
    by_victim = Counter(strike.victim for strike in strikes)
    return {
        "strikes": len(strikes),
        "kills": by_victim["worker"] + by_victim["driver"],
        "killed_at_named_steps": sum(strike.step is not None and strike.victim != "zombie" for strike in strikes),
        "killed_by_chance": sum(strike.step is None and strike.victim != "broker" for strike in strikes),
        "workers_killed": by_victim["worker"],
        "drivers_killed": by_victim["driver"],
        "brokers_killed": by_victim["broker"],
        "drivers_stopped_and_resumed_behind_another": by_victim["zombie"],
        "steps": sorted({strike.step for strike in strikes if strike.step}),
        "driver_starts": query.starts,
        "batches": query.batches_done(),
        "events": events.count,
        **_verify(cluster.bootstrap, events.count),
        "seconds_under_fire": round(seconds, 1),
    }


def _strike(query: Query, events: Events, strike: Strike, chance: random.Random) -> None:
    if strike.step is None:
        _until(query, events, lambda: bool(query.processes()), "the query")
        time.sleep(chance.uniform(0.1, 4))
        _until(query, events, lambda: query.strike(strike.victim, chance), f"a {strike.victim} to strike")
        return
    taken = query.plan.with_suffix(".taken")
    draft = query.plan.with_suffix(".draft")
    draft.write_text(json.dumps({"step": strike.step, "victim": strike.victim}))
    draft.rename(query.plan)
    _until(query, events, taken.exists, f"step {strike.step!r}")
    pids = json.loads(taken.read_text())["pids"]
    taken.unlink()
    if strike.victim == "zombie":
        _resume_behind_another(query, events, pids)


def _strike_broker(query: Query, events: Events, cluster: ClusterUp, chance: random.Random) -> None:
    time.sleep(chance.uniform(0.1, 4))
    node, before = chance.randint(1, NODES), query.batches_done()
    cluster.kill(node)
    _until(query, events, lambda: query.batches_done() > before + 1, f"the query to go on without broker {node}")
    cluster.bring_back(node)


def _resume_behind_another(query: Query, events: Events, pids: list[int]) -> None:
    before = query.batches_done()
    query.start()
    _until(query, events, lambda: query.batches_done() > before, "another driver to go on")
    for pid in pids:
        _signal(pid, signal.SIGCONT)
    # What it was about to do, it does now, while the other works: its worker ends, its driver gives up or is ended.
    _until(query, events, lambda: query.batches_done() > before + 2, "the other driver to go on beside it")
    for pid in pids:
        _signal(pid, signal.SIGKILL)


def _until(query: Query, events: Events | None, condition: object, what: str) -> None:
    """While there is always something to do for the query, and a driver to do it."""
    assert callable(condition)
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE_S} s for {what}:\n{_tail(query.directory / 'query.log')}")
        query.keep_running()
        if events is not None and events.count - query.events_planned() < 2 * EVENTS_PER_BATCH:
            events.send(EVENTS_PER_BATCH)
        time.sleep(0.05)


def _verify(bootstrap: str, count: int) -> dict[str, int]:
    """Each event once, each key's counts without a gap or a repetition."""
    seen: Counter[int] = Counter()
    numbers: dict[str, list[int]] = {}
    for key, value in _committed(bootstrap, count):
        event, _, number = value.partition(" ")
        assert key == f"key-{int(event) % KEYS}", f"event {event} has the key {key}"
        seen[int(event)] += 1
        numbers.setdefault(key, []).append(int(number))
    lost = [event for event in range(count) if event not in seen]
    doubled = [event for event, times in seen.items() if times > 1]
    assert not lost, f"{len(lost)} of {count} events are lost, the first: {lost[:5]}"
    assert not doubled, f"{len(doubled)} of {count} events came out more than once, the first: {doubled[:5]}"
    wrong = [key for key, found in numbers.items() if sorted(found) != list(range(1, len(found) + 1))]
    assert not wrong, f"counted wrongly: {wrong[:5]}"
    return {"lost": 0, "doubled": 0, "keys_counted_wrongly": 0}


def _committed(bootstrap: str, count: int) -> Iterator[tuple[str, str]]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "verify", "enable.auto.commit": False, "log_level": 2,
         "isolation.level": "read_committed", "enable.partition.eof": True}
    )  # fmt: skip
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    ended: set[int] = set()
    found = 0
    deadline = time.monotonic() + PATIENCE_S
    try:
        while len(ended) < PARTITIONS or (found < count and time.monotonic() < deadline):
            message = consumer.poll(1)
            if message is None:
                continue
            if message.error() is None:
                found += 1
                ended.discard(message.partition())
                yield message.key().decode(), message.value().decode()
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise KafkaException(message.error())
    finally:
        consumer.close()


def _last(directory: Path) -> int:
    """The highest number among the files of a checkpoint's log; -1 where there is none."""
    return max((int(one) for one in os.listdir(directory) if one.isdigit()), default=-1) if directory.exists() else -1


def _all_processes() -> list[int]:
    return [int(one) for one in os.listdir("/proc") if one.isdigit()]


def _environment(pid: int) -> bytes:
    return _proc(pid, "environ")


def _words(pid: int) -> bytes:
    return _proc(pid, "cmdline")


def _parent(pid: int) -> int:
    fields = _proc(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if fields else 0


def _proc(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _tail(path: Path, lines: int = 60) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""
