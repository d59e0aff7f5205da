"""Every configuration name that Kafka 4.3 knows, as pure tables.

Doors: `define` (what a configuration is), `values` (parse, check and print a value), `topic.TOPIC_CONFIGS`,
`group.GROUP_CONFIGS`, `metrics.CLIENT_METRICS_CONFIGS` and `broker.BROKER_CONFIGS` (name -> `ConfigDef`, in a fixed
order). Invariants: (1) a default is text and passes its own check; (2) a configuration that does nothing in Penstock
says so in its documentation; (3) a name or value that Kafka refuses is refused here, with a sentence that names it. It
never reads a file or the environment and never loads a class by name: values are data.
"""
