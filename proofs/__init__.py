"""What the product must show, at its full size: each module has `run(...)`, which returns the figures or raises.

`python -m proofs [PART ...]` runs the parts and writes docs/proofs/PART.json; the tests run the same code, shorter.
"""
