"""The transaction coordinator's decisions: what every transactional id may do next, and what is written down about it.

Doors: `shard` (one partition of the topic of transaction states), `states` (the legal steps),
`transaction` (what is stored of one id), `records` (its record, in Kafka's format), `markers` (what is to be sent).

Invariants:
1. A transaction's outcome is decided once, by the record that prepares it; markers are ordered only when that record is
   committed, and until each partition has its marker the id stays prepared (T3, T4).
2. Of an id, (producer id, epoch) never goes back; no client is ever given the last epoch there is (T7).
3. The state is a function of the log: after a failover it is what it was (T7).

It sends nothing: an order for markers is a value, and the shell says when it is carried out.
"""
