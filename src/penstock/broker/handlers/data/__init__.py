"""The data path: produce, fetch, and what is asked about offsets and producers.

Produce and Fetch take the raw frame and make no object per record; an append happens before anything is waited for, so
a connection's requests are appended in their order.
"""
