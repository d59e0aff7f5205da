"""The fuzzer's modules are found from the root of the repository, as `python -m tests.fuzz.run` finds them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
