"""A query's progress is a consumer group's, so that every Kafka tool shows its lag."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from penstock.client import Admin
from tests.pipeline.source_reads import Query

PENSTOCK = str(Path(sys.executable).parent / "penstock")


def described(cluster: Any, group: str) -> Any:
    command = [PENSTOCK, "group", "describe", group, "--bootstrap-server", cluster.bootstrap, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_group_shows_what_has_been_processed_and_what_has_not(
    spark: Any, cluster: Any, checkpoint: str, unique: Any
) -> None:
    topic = cluster.create_topic(partitions=2)
    cluster.produce(topic, [b"x"] * 7, partition=0)
    group = unique("pipeline")
    Query(spark, cluster, topic, checkpoint, **{"kafka.group.id": group}).run()
    cluster.produce(topic, [b"x"] * 3, partition=1)
    with Admin(cluster.bootstrap) as admin:
        lag = {one.partition: (one.committed, one.lag) for one in admin.lag(group)}
    assert lag == {0: (7, 0), 1: (0, 3)}


def test_the_command_line_shows_the_lag(spark: Any, penstock_cluster: Any, checkpoint: str, unique: Any) -> None:
    topic = penstock_cluster.create_topic()
    penstock_cluster.produce(topic, [b"x"] * 4)
    group = unique("pipeline")
    Query(spark, penstock_cluster, topic, checkpoint, **{"kafka.group.id": group}).run()
    penstock_cluster.produce(topic, [b"x"] * 2)
    assert '"lag": 2' in json.dumps(described(penstock_cluster, group))


def test_a_query_keeps_its_group_from_run_to_run_and_two_queries_have_two(
    spark: Any, penstock_cluster: Any, tmp_path: Path, unique: Any
) -> None:
    topic = penstock_cluster.create_topic()
    prefix = unique("team")
    for checkpoint in ("one", "two", "one"):
        penstock_cluster.produce(topic, [b"x"])
        Query(spark, penstock_cluster, topic, str(tmp_path / checkpoint), groupIdPrefix=prefix).run()
    with Admin(penstock_cluster.bootstrap) as admin:
        groups = [one.group for one in admin.groups() if one.group.startswith(f"{prefix}-")]
        offsets = sorted(offset for group in groups for offset in admin.group_offsets(group).values())
    assert offsets == [2, 3]


def test_a_group_that_consumers_use_does_not_stop_the_query(
    spark: Any, penstock_cluster: Any, checkpoint: str, unique: Any
) -> None:
    from penstock.client import Consumer

    topic = penstock_cluster.create_topic()
    penstock_cluster.produce(topic, [b"x"])
    group = unique("taken")
    with Consumer(penstock_cluster.bootstrap, topics=[topic], group=group) as consumer:
        assert consumer.poll(30) is not None
        assert Query(spark, penstock_cluster, topic, checkpoint, **{"kafka.group.id": group}).run() == ["x"]


def test_progress_is_not_shown_where_not_wanted(
    spark: Any, penstock_cluster: Any, checkpoint: str, unique: Any
) -> None:
    topic = penstock_cluster.create_topic()
    penstock_cluster.produce(topic, [b"x"])
    group = unique("silent")
    Query(spark, penstock_cluster, topic, checkpoint, commitOffsets="false", **{"kafka.group.id": group}).run()
    with Admin(penstock_cluster.bootstrap) as admin:
        assert group not in [one.group for one in admin.groups()]
