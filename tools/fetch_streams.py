"""Bring Kafka Streams and its TopologyTestDriver to `.cache/kafka-streams/<version>/libs`, for the parity tests.

The streams DSL of `penstock.pipeline` is compared with it row by row; nothing else needs it. Works as
tools/fetch_kafka.py does, and asks Maven for tools/streams-pom.xml.

    python tools/fetch_streams.py
"""

import sys

from fetch_kafka import REPOSITORY, VERSION, main

POM = REPOSITORY / "tools" / "streams-pom.xml"
LIBS = REPOSITORY / ".cache" / "kafka-streams" / VERSION / "libs"
NEEDED = tuple(
    f"{artifact}-{VERSION}.jar" for artifact in ("kafka-streams-test-utils", "kafka-streams", "kafka-clients")
)

if __name__ == "__main__":
    sys.exit(main(f"Kafka Streams {VERSION}", LIBS, POM, NEEDED))
