"""Memory for what is going to be written as a whole."""

from __future__ import annotations

import numpy as np


def uninitialized(size: int) -> memoryview:
    """So many bytes with anything in them: to write megabytes of zeros first would cost as much as to fill them."""
    return np.empty(size, np.uint8).data
