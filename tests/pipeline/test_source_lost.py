"""Records that are gone before they were read: an error that says which and why, or going on with what is left."""

from __future__ import annotations

import time
from typing import Any

import pytest

from penstock.base.ids import TopicPartition
from penstock.client import Admin
from tests.pipeline.conftest import KNOWN_S
from tests.pipeline.source_reads import Query, places, read


def test_a_stream_stops_before_a_gap_and_says_what_is_missing(spark: Any, cluster: Any, checkpoint: str) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, [b"x"] * 5)
    query = Query(spark, cluster, topic, checkpoint)
    query.run()
    cluster.produce(topic, [b"gone"] * 5 + [b"left"])
    with Admin(cluster.bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 0): 10})
    said = rf"offsets 5 to 10 of partition 0 of topic {topic} were to be read, and it now begins at offset 10: .*"
    with pytest.raises(Exception, match=said + "set failOnDataLoss to false"):
        query.run()
    tolerant = Query(spark, cluster, topic, checkpoint, failOnDataLoss="false")
    assert tolerant.run() == ["left"]


def test_a_topic_that_was_made_anew_is_noticed(spark: Any, cluster: Any, checkpoint: str) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, [b"x"] * 5)
    query = Query(spark, cluster, topic, checkpoint)
    query.run()
    with Admin(cluster.bootstrap) as admin:
        admin.delete_topics([topic])
        deadline = time.monotonic() + KNOWN_S
        while topic in [one.name for one in admin.topics()]:
            assert time.monotonic() < deadline, "the broker did not hear of it"
    with pytest.raises(Exception, match=f"partition 0 of topic {topic} is gone, and was read up to offset 5"):
        query.run()
    cluster.create_topic(name=topic)
    cluster.produce(topic, [b"anew"])
    with pytest.raises(Exception, match="ends at offset 1, and was read up to offset 5 already"):
        query.run()
    tolerant = Query(spark, cluster, topic, checkpoint, failOnDataLoss="false")
    assert tolerant.run() == ["anew"]


def test_a_topic_that_was_made_anew_and_outgrew_the_old_one_is_noticed(
    spark: Any, penstock_cluster: Any, checkpoint: str
) -> None:
    topic = penstock_cluster.create_topic()
    penstock_cluster.produce(topic, [b"x"] * 2)
    query = Query(spark, penstock_cluster, topic, checkpoint)
    query.run()
    with Admin(penstock_cluster.bootstrap) as admin:
        admin.delete_topics([topic])
    penstock_cluster.create_topic(name=topic)
    penstock_cluster.produce(topic, [b"anew 0", b"anew 1", b"anew 2"])
    with pytest.raises(Exception, match=f"topic {topic} was deleted and created anew since partition 0 was read"):
        query.run()
    tolerant = Query(spark, penstock_cluster, topic, checkpoint, failOnDataLoss="false")
    assert tolerant.run() == ["anew 0", "anew 1", "anew 2"]
    assert tolerant.run() == []


def test_a_batch_read_of_offsets_that_are_gone(spark: Any, penstock_cluster: Any) -> None:
    topic = penstock_cluster.create_topic()
    penstock_cluster.produce(topic, [b"x"] * 5)
    with Admin(penstock_cluster.bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 0): 3})
    start = {"startingOffsets": f'{{"{topic}":{{"0":1}}}}'}
    with pytest.raises(Exception, match=r"offsets 1 to 4 of partition 0 .* it now begins at offset 3"):
        read(spark, penstock_cluster, topic, **start).collect()
    assert places(read(spark, penstock_cluster, topic, failOnDataLoss="false", **start)) == [(0, 3), (0, 4)]
    end = {"endingOffsets": f'{{"{topic}":{{"0":9}}}}'}
    with pytest.raises(Exception, match="up to offset 9, and it ends at 5"):
        read(spark, penstock_cluster, topic, **end).collect()
    start = {"startingOffsets": f'{{"{topic}":{{"0":7}}}}'}
    with pytest.raises(Exception, match="from offset 7 on, and the read ends at 5"):
        read(spark, penstock_cluster, topic, **start).collect()
    assert places(read(spark, penstock_cluster, topic, failOnDataLoss="false", **start)) == []
