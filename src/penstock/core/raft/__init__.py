"""Who may write the metadata log, and in which form: KRaft (KIP-595, KIP-853, KIP-996), pure.

Doors: `raft.Raft` (one node: events and time in, what is to be done out), `rpc` (what nodes say to each other, events
and effects), `settings.Settings`, `replicated_log.ReplicatedLog` (what it needs of its log), `voters.VoterHistory`;
roles in a file each: `unattached`, `follower`, `prospective`, `candidate`, `leader`, `resigned`; and what is kept:
`state.QuorumState` (the file `quorum-state`), `batches` (metadata records as batches of the log), `snapshot`
(`<offset>-<epoch>.checkpoint` files), `retention.outdated` (which of them may go).

Invariants: (K1) an epoch has one leader; (K2) epoch and vote are saved before they are acted upon, and never go back;
(K3) the high watermark is what a majority has synced, moves only past an entry of the leader's own epoch, and never
falls; (K4) where two logs have the same offset and epoch, they agree up to there; (K7) nothing below the watermark is
cut, and a snapshot reaches to where the log begins; (K8) one change of voters at a time, after an entry of the epoch is
committed, and a voter is an id with a directory. It never reads a clock or a socket; the log writes through its port.
"""
