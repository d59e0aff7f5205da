"""One file an API: authorize, one call into one room, build the answer.

`handle(session, header, request)` returns the response or a coroutine of it; the two of the data path get raw frames.
Invariants:
1. `broker/apis.py` names each file, and its docstring opens with the API and the versions that the table serves: a test
   holds the two together.
2. Whatever a request names is authorized before anything is told of it or done to it.
3. One topic, partition or group that is refused leaves the others of the same request alone.

A handler keeps no state and never calls another handler.
"""
