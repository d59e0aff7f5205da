"""What one broker tells of itself, in Prometheus's text format, under the names that dashboards know.

Doors: `collect.collect` (one scrape), `sources.Sources` (what is looked at), `watch.Watch` (calls that held the loop),
`loop_probe.LoopProbe` (how late the loop is). The names are those of Strimzi's rules for Kafka's JMX beans and of
kafka_exporter; what has no name there begins with `penstock_`.
Invariants:
1. Looking changes nothing: a scrape reads counters and state, and keeps none of its own.
2. A scrape lets the loop go on every few milliseconds, however many partitions there are.
3. Summed over all brokers a figure is right: a partition is told by its leader, a group by its coordinator, the
   cluster's totals by the active controller.

It never waits for a disk or a lock, and never asks another broker.
"""
