"""Penstock's own Kafka client, sans-IO: state machines that are told what arrived and say what to send.

Doors, pure: `connection.Connection` (one connection: frames, versions, answers in order), `cluster.Cluster` (brokers,
topics, leaders, coordinators), `conversation` (a talk with the cluster as a generator of effects), `routes` (talks that
find the right broker and try again), `produce.Producer` and `transactions.Transactions`, `fetch.Fetcher`,
`consumer.GroupConsumer` (with `group.Member` or `consumer_member.ConsumerMember`), `share_consumer.ShareConsumer`,
`admin`, `group_admin`; `security.parse` (settings to a `security.Security`), `authentication` with the mechanisms in
`sasl` and `scram`. Doors that act: `blocking.Client` (sockets) and `aio.Client` (asyncio), which only run talks, and
`tls.context`.

Invariants:
1. Only `blocking`, its links, `aio`, `tls` and `within` know sockets, files, loops, clocks and chance; everywhere else
   time and chance are arguments or replies.
2. Answers of a connection complete in the order of their requests, or the connection is closed.
3. A batch keeps its sequence until its fate is known: it is stamped anew only after a refusal that says "not appended".
4. A fetch position moves forward only over whole batches, and never past a truncation that went unnoticed.
5. All connections of a client are as safe as its `Security` says; no password is in a repr, a log line or an error.

It never decides for the application: what is neither retriable nor repaired by new metadata comes back as a
`KafkaError`, and a login that a broker refuses is not tried again.
"""
