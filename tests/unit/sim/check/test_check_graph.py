"""Components and cycles against the obvious way to find them."""

from random import Random

from penstock.sim.check.graph import components, has_cycle, short_cycle


def reachable(edges, start):
    seen, rest = set(), [start]
    while rest:
        for after in edges[rest.pop()]:
            if after not in seen:
                seen.add(after)
                rest.append(after)
    return seen


def test_components_are_those_who_reach_each_other():
    random = Random(5)
    for _ in range(200):
        count = random.randrange(1, 12)
        edges = [[random.randrange(count) for _ in range(random.randrange(3))] for _ in range(count)]
        reach = [reachable(edges, node) for node in range(count)]
        expected = {frozenset([a, *(b for b in range(count) if b in reach[a] and a in reach[b])]) for a in range(count)}
        assert {frozenset(found) for found in components(edges)} == {one for one in expected if len(one) > 1}


def test_a_path_of_a_hundred_thousand_needs_no_recursion():
    edges = [[node + 1] for node in range(100_000)] + [[0]]
    (found,) = components(edges)
    assert len(found) == 100_001


def test_the_shorter_cycle_is_told():
    edges = [[1], [2, 0], [3], [0]]
    assert short_cycle(range(4), edges.__getitem__, edges.__getitem__) == [0, 1]


def test_a_cycle_must_have_one_of_the_wanted_edges():
    edges, wanted = [[1], [0, 2], [1]], [[], [], [1]]
    assert short_cycle(range(3), edges.__getitem__, wanted.__getitem__) == [2, 1]


def test_there_is_a_cycle_where_there_is_a_component():
    random = Random(6)
    found = set()
    for _ in range(300):
        count = random.randrange(1, 8)
        edges = [[b for b in range(count) if b != a and random.random() < 0.15] for a in range(count)]
        found.add(has_cycle(edges))
        assert has_cycle(edges) == any(True for _ in components(edges))
    assert found == {True, False}
