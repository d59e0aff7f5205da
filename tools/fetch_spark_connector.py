"""Bring Spark's own Kafka connector to `.cache/spark-connector/<version>/libs`, for the tests that compare with it.

Penstock's data source needs no jar; this is what it is measured against, and what has to work with Penstock's brokers
as it does with Apache Kafka's. Works as tools/fetch_kafka.py does, and asks Maven for tools/spark-connector-pom.xml.

    python tools/fetch_spark_connector.py
"""

import sys

from fetch_kafka import REPOSITORY, main

VERSION = "4.2.0"
POM = REPOSITORY / "tools" / "spark-connector-pom.xml"
LIBS = REPOSITORY / ".cache" / "spark-connector" / VERSION / "libs"
NEEDED = (
    f"spark-sql-kafka-0-10_2.13-{VERSION}.jar",
    "spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
    "kafka-clients-3.9.2.jar",
    "commons-pool2-2.12.1.jar",
)

if __name__ == "__main__":
    sys.exit(main(f"Spark's Kafka connector {VERSION}", LIBS, POM, NEEDED))
