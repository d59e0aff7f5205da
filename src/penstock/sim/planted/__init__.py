"""Known bugs, planted: patches that the simulator puts into the cores to show that its checks can fail.

Doors: `registry.PLANTED` names every bug with its historical source; `registry.planted(name)` is a context in which it
is in. `storage` has those of one broker's disk. Invariants: (1) each is caught by the seed that is recorded with it,
and by one in a stated number of seeds; (2) outside of `planted` the code is as it was. Nothing of it is in the product.
"""
