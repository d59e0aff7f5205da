"""Bring RabbitMQ's own Java client to `.cache/rabbitmq-client/<version>/libs`, for the comparison of queues.

benchmarks/queues.py puts a RabbitMQ queue under load with it; nothing else needs it. Works as tools/fetch_kafka.py
does, and asks Maven for tools/rabbitmq-client-pom.xml. The server is the package `rabbitmq-server` of the system.

    python tools/fetch_rabbitmq_client.py
"""

import sys

from fetch_kafka import REPOSITORY, main

VERSION = "5.25.0"
POM = REPOSITORY / "tools" / "rabbitmq-client-pom.xml"
LIBS = REPOSITORY / ".cache" / "rabbitmq-client" / VERSION / "libs"
NEEDED = (f"amqp-client-{VERSION}.jar",)

if __name__ == "__main__":
    sys.exit(main(f"RabbitMQ's Java client {VERSION}", LIBS, POM, NEEDED))
