"""The ground floor: names and numbers that every room may use.

Doors: `ids` (topic ids, names), `errors` (the error table), `limits` (every bound with its unit), `ports` (the whole
outside world), `slices` (bytes that are still in a file), `configs` (every configuration name). It imports nothing of
ours and nothing that acts.
"""
