"""What the active controller decides: a request and an image in, records and an answer out.

Doors: `topics.decide_create_topics`, `topics.decide_delete_topics`, `partitions.decide_create_partitions`,
`configs.decide_incremental_alter_configs`, `configs.decide_alter_configs`, `describe.describe_configs`,
`describe.list_config_resources`, `brokers.decide_register_broker`, `brokers.decide_unfence_broker`,
`producer_ids.decide_allocate_producer_ids`, `features.decide_update_features`; all return `result.Result`.

Invariants: (1) a decision changes nothing: only its records do, once committed and replayed; (2) the records of a
decision are appended as one batch, so they hold together or not at all; (3) an error of one topic or resource leaves
the others of the same request alone. It never waits, writes or sends.
"""
