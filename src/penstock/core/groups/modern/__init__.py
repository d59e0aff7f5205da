"""What groups with server-side assignment (consumer groups, share groups, streams groups) have in common.

Doors: `metadata.Metadata` (the topics and group configurations as the shards of one broker see them, and when topics
changed), `membership` (the states of a member, its epochs), `assignment` (partitions by topic id, from and to
messages), `settings` (a group's configurations, bounded by the broker's), `events` (what their timers say), `timing`
(when those are due), `draft.Draft` (a group with changes that are not stored yet), `records` (how they are stored),
`offsets` (who may commit), `requests` (what a heartbeat must say).

It keeps nothing of a group: each type of group has its own room beside this one, and its own records.
"""
