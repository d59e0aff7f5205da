"""The `penstock` command.

Doors: `main.main`, the console script. Each command is a module of its own with `configure(parser)`, loaded only when
it is called.

Invariants:
1. Results go to stdout, everything else to stderr; exit codes are 0 done, 1 failed, 2 wrong usage, 130 interrupted.
2. Every command takes --format text|json; what JSON looks like only ever grows.
3. What destroys asks first, or is told --yes; without a terminal it never assumes the answer.
4. `penstock --help` and `penstock up` import neither a client nor rich.

It never does a broker's work: it is a client like any other, except for `up` and `broker`, which start one, `sim`,
which simulates a whole cluster, and `dump`, which reads files with the codecs of core/log.
"""
