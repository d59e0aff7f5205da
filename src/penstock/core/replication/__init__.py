"""One partition and its copies: what may be appended, what may be read, what is committed.

Doors: `partition.Partition` with its role, `leading.Leading` or `following.Following`; `isr` has what passes between a
leader and the controller, `closest` where a consumer should read, `placing` and `repair` what becomes of a copy that
has failed or is damaged, `fetch_session.FetchSessions` what readers remember.
Invariants (the simulation of three copies holds them, tests/sim/test_replication.py):
1. high_watermark <= log end; it never goes back while this replica leads, and moves only with min.insync.replicas.
2. It is at most the end of every copy in the maximal ISR: who may be elected has all that was committed.
3. A reader never gets a byte at or above the watermark (read_committed: above the last stable offset).
4. A leader never cuts its log; a follower cuts what its leader's history does not have, by epochs, and believes its
   leader's watermark only once nothing has to be cut.
5. A follower counts as in sync only by fetches of this leader epoch and of the broker epoch that is registered.
6. `watchers` and `copiers` hold the fetch positions to be marked by the next append: those that wait, and those not yet
   marked.
"""
