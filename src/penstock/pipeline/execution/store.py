"""Spark's state store, asked many things at once.

Its Python client waits for each answer, which costs a key half a millisecond. The server behind it works through what
comes in order, so here many requests go out before the first answer is read: twenty microseconds each. This is the one
file that knows the messages between a Python worker and Spark's state server.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from struct import Struct
from typing import Any, Final

import pyspark.sql.streaming.proto.StateMessage_pb2 as messages
from pyspark.serializers import pickle_protocol
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructField, StructType

KEPT: Final = "kept"
ENTRIES: Final = "entries"
IN_FLIGHT_BYTES: Final = 32 * 1024
"""Of requests whose answers have not been read. It fits into any socket's buffer: more could stop both sides, each
waiting for the other to read."""
_BINARY: Final = StructType([StructField("data", BinaryType(), False)])
_HEAD: Final = Struct(">ii")
_LENGTH: Final = Struct(">i")
_OK: Final = 0


class Store:
    """Of one task. `kept` is a map for each slot; `entries` is a map for each name that `of` is given."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        handle.getMapState(KEPT, _BINARY, _BINARY)
        handle.getMapState(ENTRIES, _BINARY, _BINARY)
        self._client: Any = handle._statefulProcessorApiClient
        self._scans = count()
        self._slot = b""
        self._at = b""

    def enter(self, slot: bytes) -> None:
        """Spark has just turned to this slot."""
        self._slot = self._at = slot

    def leave(self) -> None:
        self._turn_to(self._slot)

    def kept(self, names: Sequence[bytes]) -> list[bytes | None]:
        self._turn_to(self._slot)
        requests = (_map_call(KEPT, getValue=messages.GetValue(userKey=_row(name))) for name in names)
        return [_data(answer.value) for answer in self._ask(requests)]

    def keep(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """None removes."""
        self._turn_to(self._slot)
        self._change(KEPT, changes)

    def entry(self, of: bytes, name: bytes) -> bytes | None:
        self._turn_to(of)
        (answer,) = self._ask([_map_call(ENTRIES, getValue=messages.GetValue(userKey=_row(name)))])
        return _data(answer.value)

    def put_entries(self, of: bytes, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        self._turn_to(of)
        self._change(ENTRIES, changes)

    def scan_entries(self, of: bytes) -> Iterator[tuple[bytes, bytes]]:
        self._turn_to(of)
        call = _map_call(ENTRIES, iterator=messages.Iterator(iteratorId=f"penstock-{next(self._scans)}"))
        more = True
        while more:
            (answer,) = self._ask([call], messages.StateResponseWithMapIterator, may_be_empty=True)
            for pair in answer.kvPair:
                yield bytes(pickle.loads(pair.key)[0]), bytes(pickle.loads(pair.value)[0])
            more = answer.requireNextFetch

    def _turn_to(self, name: bytes) -> None:
        if name != self._at:
            key = messages.SetImplicitKey(key=_row(name))
            request = messages.ImplicitGroupingKeyRequest(setImplicitKey=key)
            list(self._ask([messages.StateRequest(implicitGroupingKeyRequest=request).SerializeToString()]))
            self._at = name

    def _change(self, state: str, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        requests = (
            _map_call(state, removeKey=messages.RemoveKey(userKey=_row(name)))
            if data is None
            else _map_call(state, updateValue=messages.UpdateValue(userKey=_row(name), value=_row(data)))
            for name, data in changes
        )
        for _ in self._ask(requests):
            pass

    def _ask(
        self,
        requests: Iterable[bytes],
        kind: Callable[[], Any] = messages.StateResponse,
        *,
        may_be_empty: bool = False,
    ) -> Iterator[Any]:
        out: list[bytes] = []
        size = 0
        for request in requests:
            if out and size + len(request) > IN_FLIGHT_BYTES:
                yield from self._exchange(out, kind, may_be_empty)
                out, size = [], 0
            out.append(request)
            size += len(request)
        yield from self._exchange(out, kind, may_be_empty)

    def _exchange(self, out: list[bytes], kind: Callable[[], Any], may_be_empty: bool) -> list[Any]:
        file = self._client.sockfile
        file.write(b"".join(_HEAD.pack(0, len(one)) + one for one in out))
        file.flush()
        answers = []
        for _ in out:
            (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
            answer = kind()
            answer.ParseFromString(file.read(length))
            if answer.statusCode != _OK and not may_be_empty:
                raise RuntimeError(f"Spark's state store refused a request: {answer.errorMessage}")
            answers.append(answer)
        return answers


def _map_call(state: str, **call: Any) -> bytes:
    request = messages.StateVariableRequest(mapStateCall=messages.MapStateCall(stateName=state, **call))
    encoded: bytes = messages.StateRequest(stateVariableRequest=request).SerializeToString()
    return encoded


def _row(data: bytes) -> bytes:
    return pickle.dumps((data,), pickle_protocol)


def _data(value: bytes) -> bytes | None:
    return bytes(pickle.loads(value)[0]) if value else None
