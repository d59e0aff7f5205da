"""A client of a Spark Connect server, in a process of its own: one that has a regular session can have no other.

`python -m tests.pipeline.connect_client URL BOOTSTRAP SOURCE TARGET`: a topic read, written, and read as a stream; a
load, which is refused. What happened is printed as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile

from penstock.pipeline import session
from penstock.pipeline.lake import load
from penstock.pipeline.lake.errors import LakeError


def main(url: str, bootstrap: str, source: str, target: str) -> None:
    spark = session("client", url)
    clients = {"kafka.bootstrap.servers": bootstrap}
    rows = spark.read.format("penstock").options(**clients).option("subscribe", source).load()
    told: dict[str, object] = {"read": sorted(bytes(row.value).decode() for row in rows.select("value").collect())}
    made = rows.selectExpr("key", "concat(value, '!') AS value")
    made.write.format("penstock").options(**clients).option("topic", target).mode("append").save()
    stream = spark.readStream.format("penstock").options(**clients).option("subscribe", target)
    writer = stream.option("startingOffsets", "earliest").load().writeStream.format("memory").queryName("seen")
    query = writer.option("checkpointLocation", tempfile.mkdtemp()).trigger(availableNow=True).start()
    query.awaitTermination()
    seen = spark.sql("SELECT CAST(value AS STRING) AS value FROM seen").collect()
    told["streamed"] = sorted(row.value for row in seen)
    try:
        load(source, tempfile.mkdtemp() + "/table", bootstrap=bootstrap, once=True, spark=spark)
    except LakeError as error:
        told["load"] = str(error)
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
