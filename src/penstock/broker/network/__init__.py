"""Frames in, frames out: connections, sessions, and the way of a request to its handler.

Doors: `door.Door` (what all connections of a listener share), `connection.Connection`, `session.Session`, `table.Table`
(the form of `broker/apis.py`), `reply.Reply` (an answer that comes later), `budget.Budget` (the bytes of all requests).
Invariants:
1. No memory is committed because a length was declared.
2. No request is handled before the one that came before it has started; nobody's answer overtakes another's.
3. What a peer sends that has no answer closes its connection, and nothing else.

It never looks inside a record batch, and never decides what a request means: that is its handler's.
"""
