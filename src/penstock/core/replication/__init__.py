"""One partition and its copies: what may be appended, what may be read, what is committed.

Doors: `partition.Partition`, `fetch_session.FetchSessions`. With one copy the watermark follows the log's end, or its
synced end where every message must be flushed; followers come in beneath the same doors.
Invariants:
1. high_watermark <= log end; it never goes back while this replica leads.
2. A reader never gets a byte at or above the watermark (read_committed: above the last stable offset).
3. `watchers` holds the fetch positions to be marked by the next append: those that wait, and those not yet marked.
"""
