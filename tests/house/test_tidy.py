"""Rules that no linter holds: where clocks and chance may be, how long things get, what is never written."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.house.tracked import GENERATED, functions, imported, text, tracked, tree, written_by_hand

OUTSIDE_WORLD = ("time", "random", "uuid", "secrets")
EXECUTORS = ("ThreadPoolExecutor", "ProcessPoolExecutor")

MAY_KNOW_THE_WORLD = {
    "src/penstock/broker/system.py": "the ports' implementation: clock, chance, threads",
    "src/penstock/broker/journal.py": "log lines carry the system's time, in UTC",
    "src/penstock/cli/": "a command is a client, and one of its own",
    "src/penstock/client/": "a facade over librdkafka, which has threads and clocks",
    "src/penstock/pipeline/sink/writers.py": "every batch write has an id that no other has",
    "src/penstock/sim/": "chance from a seed alone: Random(seed)",
    "src/penstock/pipeline/source/": "asks a cluster again after a while, and names queries",
    "src/penstock/tables/": "a reader of topics with a thread and a clock of its own, outside the broker",
    "src/penstock/testing/": "waits for brokers and makes names that nobody else has",
    "src/penstock/wire/aio.py": "the shell of the sans-IO client on asyncio",
    "src/penstock/wire/blocking.py": "the shell of the sans-IO client on sockets",
}

FILE_LINES_MAX = 600
LONG_FILES: dict[str, int] = {}
"""Files above the limit, with their length: it may only shrink, and nothing may be added."""

FUNCTION_LINES_MAX = 70
LONG_FUNCTIONS = {
    "src/penstock/records/record.py scan": 106,  # one pass over a batch's bytes by hand: a call per record is too dear
}
"""Functions above the limit, with their length: it may only shrink, and nothing may be added."""

SLEEPS_OUTSIDE_LOOPS = {
    "tests/sim/test_sim_loop.py": "sleeps in virtual time, which is what it shows",
    "tests/unit/testing/test_testing_simulate.py": "sleeps in virtual time, which is what it shows",
    "tests/unit/broker/test_metrics_loop.py": "shows that a stopped timer does not come again",
}
"""Elsewhere a test sleeps only between two looks at a condition, which its time limit bounds."""

NEVER_WRITTEN = {
    "a path of the machine it was written on": r"(?<![\w.])/work/|\.\./shared\b|\bDEVELOPERS\b",
    "how it was written": r"\b(sub-?agents?|AI agents?|LLMs?|chatbots?|coding assistants?|prompt engineering)\b",
    "the number of an issue": r"\b[Ii]ssues? #?\d+|(?<![\w&/])#\d{1,4}\b(?![-\w])|\bGH-\d+\b",
    "the host of a package registry": r"pypi\.org|pythonhosted|repo1?\.maven|index-url|npmjs|artifactory",
}
QUOTES_THE_RULES = "tests/house/test_tidy.py"

VAGUE_NAMES = re.compile(r"(^|/)_*(utils?|helpers?|common|misc|stuff)(\.py)?(/|$)")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
BARE_IGNORE = re.compile(r"#\s*type:\s*ignore(\[[^\]]*\])?\s*$")


def test_clocks_chance_and_pools_are_known_to_the_ports_and_clients_alone():
    assert [path for path in written_by_hand("src/") if _knows_the_world(path) and _reason(path) is None] == []


def test_nobody_may_know_the_world_without_needing_it():
    knowing = [path for path in written_by_hand("src/") if _knows_the_world(path)]
    assert [place for place in MAY_KNOW_THE_WORLD if not any(path.startswith(place) for path in knowing)] == []


def _reason(path: str) -> str | None:
    return next((why for place, why in MAY_KNOW_THE_WORLD.items() if path.startswith(place)), None)


def _knows_the_world(path: str) -> bool:
    names = imported(path)
    return (
        any(name.split(".")[0] in OUTSIDE_WORLD for name in names)
        or any(name.endswith(EXECUTORS) for name in names)
        or bool(re.search(r"\burandom\(", text(path)))
    )


def test_a_file_can_be_read_in_one_sitting():
    lengths = {path: text(path).count("\n") for path in written_by_hand("src/")}
    assert {path: lines for path, lines in lengths.items() if lines > FILE_LINES_MAX} == LONG_FILES


def test_a_function_fits_a_screen_or_two():
    found = [
        (f"{path} {one.name}", one.lines)
        for path in written_by_hand()
        for one in functions(path)
        if one.lines > FUNCTION_LINES_MAX
    ]
    assert dict(found) == LONG_FUNCTIONS


def test_what_the_type_checker_is_told_to_ignore_has_a_reason():
    assert list(_lines(written_by_hand(), BARE_IGNORE)) == []


def test_nothing_is_left_for_later_in_a_comment():
    assert list(_lines(_own_texts(), UNFINISHED)) == []


def test_a_file_is_named_after_what_it_holds():
    assert [path for path in tracked() if VAGUE_NAMES.search(path)] == []


def test_a_test_file_has_a_name_of_its_own():
    """pytest imports them by name alone: of two, the second is not run."""
    names = Counter(Path(path).name for path in tracked("tests/", ".py") if Path(path).name.startswith("test_"))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_package_says_what_it_is():
    rooms = [path for path in tracked("src/", "__init__.py") if not ast.get_docstring(tree(path))]
    assert rooms == []


def test_nothing_tells_of_the_machine_or_the_day_it_was_written():
    told = [
        f"{where}: {what}"
        for what, pattern in NEVER_WRITTEN.items()
        for where in _lines(_own_texts(), re.compile(pattern))
    ]
    assert told == []


def test_no_test_sleeps_to_let_something_happen():
    sleeping = [where for path in written_by_hand("tests/") for where in _sleeps_outside_loops(path)]
    assert [where for where in sleeping if where.split(":")[0] not in SLEEPS_OUTSIDE_LOOPS] == []


def _own_texts() -> list[str]:
    """All that is written by hand, prose included, but for this list of what must not be."""
    return [path for path in tracked() if not path.startswith(GENERATED) and path not in (QUOTES_THE_RULES, "LICENSE")]


def _lines(paths: tuple[str, ...] | list[str], pattern: re.Pattern[str]) -> Iterator[str]:
    for path in paths:
        for number, line in enumerate(text(path).splitlines(), 1):
            if pattern.search(line):
                yield f"{path}:{number}"


def _sleeps_outside_loops(path: str) -> Iterator[str]:
    """Calls of time.sleep and asyncio.sleep that wait for real and stand in no loop of their function."""
    looped: set[ast.AST] = set()
    for loop in ast.walk(tree(path)):
        if isinstance(loop, ast.While | ast.For | ast.AsyncFor):
            looped.update(ast.walk(loop))
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and _called(node) == "sleep" and node not in looped and not _is_zero(node):
            yield f"{path}:{node.lineno}"


def _called(call: ast.Call) -> str:
    target = call.func
    return target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""


def _is_zero(call: ast.Call) -> bool:
    """`asyncio.sleep(0)` lets the loop go on, and waits for nothing."""
    return bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0
