"""Spark's own Kafka connector works against Penstock, and our source sees what it sees."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.client import Producer
from tests.components import require_component
from tests.pipeline.source_reads import read

JARS = Path(__file__).parents[2] / ".cache" / "spark-connector" / "4.2.0" / "libs"
SCRIPT = Path(__file__).with_name("spark_connector.py")


@pytest.mark.timeout(400)
def test_sparks_own_connector_reads_writes_and_streams(spark: Any, penstock_cluster: Any) -> None:
    require_component(
        any(JARS.glob("spark-sql-kafka-*.jar")), "Spark's Kafka connector", "run tools/fetch_spark_connector.py"
    )
    topic = penstock_cluster.create_topic(partitions=2)
    penstock_cluster.create_topic(name=f"{topic}-copy")
    with Producer(penstock_cluster.bootstrap) as producer:
        for n in range(20):
            producer.send(topic, f"v{n}", key=f"k{n}", partition=n % 2)
    command = [sys.executable, str(SCRIPT), str(JARS), penstock_cluster.bootstrap, topic]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    ours = read(spark, penstock_cluster, topic)
    selected = ours.selectExpr("string(key)", "string(value)", "partition", "offset").orderBy("partition", "offset")
    assert seen["read"] == seen["streamed"] == [list(row) for row in selected.collect()]
    assert seen["copied"] == sorted([f"k{n}", f"v{n}"] for n in range(20))
    assert seen["schema"] == ours.schema.simpleString()
