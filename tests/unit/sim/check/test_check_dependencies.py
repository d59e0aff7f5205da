"""The two forms of real time: a frontier, and a line of moments."""

from random import Random

from penstock.sim.check.dependencies import Dependencies, data_steps, timeline
from penstock.sim.check.facts import Facts
from penstock.sim.check.history import History, Send


def chance_history(random):
    history = History()
    opened = {}
    for moment in range(40):
        process = random.randrange(6)
        if process in opened:
            history.complete(opened.pop(process), random.choice(["ok", "ok", "fail", "info"]), moment)
        else:
            # A number of its own: whoever ends with an unknown outcome is retired.
            opened[process] = moment
            history.invoke(moment, "send", moment, [Send("x", moment)])
    return history


def reached(edges, start):
    seen, rest = set(), [start]
    while rest:
        for after in edges[rest.pop()]:
            if after not in seen:
                seen.add(after)
                rest.append(after)
    return seen


def test_who_ended_before_whom_is_the_same_by_frontier_by_moments_and_by_definition():
    random = Random(11)
    for _ in range(60):
        facts = Facts(chance_history(random))
        steps = data_steps(facts)
        frontier = Dependencies(facts, steps, write_order=False).realtime
        moments = timeline(facts, steps, write_order=False)
        for node, step in enumerate(steps):
            mine = step.operation
            later = {
                other
                for other, one in enumerate(steps)
                if mine.type != "info" and facts.invoked[one.operation.number].number > mine.number
            }
            assert reached(frontier, node) == later
            assert {one for one in reached(moments, node) if one < len(steps)} == later


def test_a_process_with_one_operation_at_a_time_makes_a_line():
    history = History()
    for moment in range(50):
        history.invoke(1, "send", moment, [Send("x", moment)])
        history.complete(1, "ok", moment)
    facts = Facts(history)
    edges = Dependencies(facts, data_steps(facts), write_order=False)
    assert edges.realtime == edges.process == [*([node + 1] for node in range(49)), []]
