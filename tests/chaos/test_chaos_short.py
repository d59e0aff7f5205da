"""A cluster of three real processes, broken under load: the same code that `make prove` runs for an hour."""

from __future__ import annotations

import pytest

from proofs import cluster_chaos, cluster_cuts, cluster_grow, network_spaces, share_kills, transactional_copy
from tests.components import require_component
from tests.conformance.apache import find_jars


@pytest.mark.timeout(240)
def test_killed_paused_and_restarted_brokers_lose_nothing_and_clients_go_on():
    """The limits on how long clients wait are those of the proof: 3 s, 5 s, and the session's 9 s and 2 s more."""
    figures = cluster_chaos.run(breaks=4, kinds=["leader", "controller", "pause", "rolling"])
    assert figures["anomalies"] == {}
    assert figures["failed_delivery_reports"] == figures["faults_from_poll"] == 0
    assert figures["records_read"] > 1000


@pytest.mark.timeout(240)
def test_a_broker_that_the_network_loses_is_replaced_and_comes_back():
    require_component(network_spaces.available(), "A network namespace", "run as root, with iproute2 installed")
    figures = cluster_cuts.run(cuts=2)
    assert figures["anomalies"] == {}
    assert figures["failed_delivery_reports"] == 0


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("library", "protocol", "kinds"),
    [
        ("confluent-kafka", "consumer", ["loop", "transaction coordinator"]),
        ("java", "classic", ["group coordinator", "loop"]),
    ],
)
def test_a_copy_in_transactions_is_exactly_once_while_brokers_and_loops_are_killed(
    library: str, protocol: str, kinds: list[str]
):
    if library == "java":
        require_component(find_jars() is not None, "Apache Kafka", "python tools/fetch_kafka.py")
    figures = transactional_copy.run(breaks=len(kinds), clients=[(library, protocol)], kinds=kinds)
    assert figures[f"{library}, {protocol}"]["records"] > 100


@pytest.mark.timeout(240)
def test_a_share_group_gives_out_everything_and_nothing_again_that_was_confirmed():
    figures = share_kills.run(breaks=3, kinds=["worker", "leader", "share coordinator"])
    assert figures["confirmed"] > 100


@pytest.mark.timeout(240)
def test_a_broker_added_gets_its_share_and_one_lost_for_good_is_replaced():
    require_component(find_jars() is not None, "Apache Kafka", "python tools/fetch_kafka.py")
    figures = cluster_grow.run(
        partitions=6, ballast_mb=2, balance_every_ms=500, settings={"offsets.topic.num.partitions": "6"}
    )
    assert figures["anomalies"] == {}
    assert figures["failed_delivery_reports"] == 0
