"""Hostile twins of the ports, for tests and proofs: so far the disk.

Doors: `disk.SimDisk` and its faults: crashes that lose what was not synced, torn and misdirected writes, flipped
bits, errors, a full disk. Invariants: (1) chance comes from the seed alone, so that a run can be repeated; (2) what was
synced survives a crash, unless a fault that was asked for takes it. It never touches a real file, and the broker never
imports it. The simulated network and clock are not begun.
"""
