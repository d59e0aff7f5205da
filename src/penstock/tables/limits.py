"""Every bound of a table, with its unit and the reason for its size."""

from __future__ import annotations

MAP_BYTES_FIRST = 1_073_741_824
"""bytes of the memory map at the first start: addresses, not memory or disk; it doubles when the store outgrows it."""

MAP_BYTES_MAX = 1 << 46
"""bytes; what a process of today can address leaves this much."""

READERS_MAX = 512
"""transactions that may read at the same moment, over all processes."""

TRANSACTION_RECORDS_MAX = 200_000
"""records gathered for one transaction while a table loads: larger ones write each page less often."""

TRANSACTION_BYTES_MAX = 67_108_864
"""bytes of keys and values gathered for one transaction."""

FETCH_BYTES_MAX = 16_777_216
"""bytes of one answer of a broker."""

FETCH_PARTITION_BYTES_MAX = 4_194_304
"""bytes of one partition in it."""

SWEEP_ENTRIES_MAX = 20_000
"""entries looked at in one transaction where a log's start has moved past some."""

PAGE_ENTRIES_DEFAULT = 100
PAGE_ENTRIES_MAX = 10_000
"""entries of one page of a range."""

PAGE_BYTES_MAX = 8_388_608
"""bytes of keys and values after which a page ends, whatever its limit."""

BATCH_KEYS_MAX = 10_000
"""keys that one request may ask for."""

BATCH_BYTES_MAX = 67_108_864
"""bytes of values in the answer to one request for several keys."""

BODY_BYTES_MAX = 4_194_304
"""bytes of a request's body."""

WAIT_MS_MAX = 30_000
"""ms that a request may wait for an offset."""

WAITERS_MAX = 10_000
"""calls and requests that wait for offsets at the same moment."""

assert PAGE_ENTRIES_DEFAULT <= PAGE_ENTRIES_MAX
assert FETCH_PARTITION_BYTES_MAX <= FETCH_BYTES_MAX <= TRANSACTION_BYTES_MAX
