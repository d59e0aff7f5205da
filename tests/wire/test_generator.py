"""The generated modules are what the generator makes of Apache's jars: nobody edited them, and running it again changes
nothing."""

from __future__ import annotations

import sys
from pathlib import Path

from kafka_jars import require_jars

REPOSITORY = Path(__file__).parents[2]
GENERATED = REPOSITORY / "src" / "penstock" / "protocol" / "generated"


def test_the_generator_gives_the_committed_modules() -> None:
    jars = require_jars()
    sys.path.insert(0, str(REPOSITORY / "tools"))
    try:
        from generate_messages import all_texts
        from message_spec import read_jars
    finally:
        sys.path.pop(0)
    texts = all_texts(read_jars(jars), "4.3.0")
    assert texts == {path.name: path.read_text() for path in GENERATED.glob("*.py")}
