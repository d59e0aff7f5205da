"""A read on a machine without Java, in a process of its own: `python java_free.py BOOTSTRAP TOPIC`.

Whoever runs it has taken Java from the PATH and JAVA_HOME; the usual places are hidden here.
"""

from __future__ import annotations

import json
import os
import shutil
import sys

from penstock.pipeline import java, session


def main(bootstrap: str, topic: str) -> None:
    java.USUAL_PLACES = ()
    assert shutil.which("java") is None and "JAVA_HOME" not in os.environ
    spark = session("java-free", master="local[1]")
    frame = spark.read.format("penstock").option("bootstrap", bootstrap).option("subscribe", topic).load()
    values = sorted(row.value.decode() for row in frame.collect())
    version = spark.sparkContext._jvm.java.lang.System.getProperty("java.home")
    sys.stdout.write(json.dumps({"values": values, "java": version}) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
