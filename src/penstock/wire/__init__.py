"""Penstock's own Kafka client, sans-IO: state machines that are told what arrived and say what to send.

Doors, pure: `connection.Connection` (one connection: frames, versions, answers in order), `cluster.Cluster` (brokers,
topics, leaders, coordinators), `conversation` (a talk with the cluster as a generator of effects), `routes` (talks that
find the right broker and try again), `produce.Producer` and `transactions.Transactions`, `fetch.Fetcher`,
`consumer.GroupConsumer`, `admin`, `group_admin`. Doors that act: `blocking.Client` (sockets) and `aio.Client`
(asyncio); both only run talks.

Invariants:
1. Only `blocking` and `aio` know sockets, loops, clocks and chance; everywhere else time is an argument or a reply.
2. Answers of a connection complete in the order of their requests, or the connection is closed.
3. A batch keeps its sequence until its fate is known: it is stamped anew only after a refusal that says "not appended".
4. A fetch position moves forward only over whole batches, and never past a truncation that went unnoticed.

It never decides for the application: what is neither retriable nor repaired by new metadata comes back as a
`KafkaError`. TLS and SASL are not spoken yet.
"""
