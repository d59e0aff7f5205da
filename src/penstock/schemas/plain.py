"""Values without a schema, as Kafka's own serializers write them: bytes, text, and big-endian numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.schemas.errors import SchemaError, Undecodable
from penstock.schemas.formats import Decoded, by_row, fine, one_array


@dataclass(frozen=True)
class Bytes:
    """Bytes as they are."""

    name = "bytes"
    type = pa.binary()

    def decode(self, data: pa.Array) -> Decoded:
        return fine(one_array(data).cast(pa.binary()))

    def encode(self, values: pa.Array) -> pa.Array:
        return one_array(values).cast(pa.binary())


@dataclass(frozen=True)
class Text:
    """UTF-8."""

    name = "text"
    type = pa.string()

    def decode(self, data: pa.Array) -> Decoded:
        whole = one_array(data)
        try:
            return fine(whole.cast(pa.string()))
        except pa.ArrowInvalid:
            return by_row(whole.to_pylist(), text_of, pa.string())

    def encode(self, values: pa.Array) -> pa.Array:
        return one_array(values).cast(pa.string()).cast(pa.binary())


def text_of(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Undecodable(f"not UTF-8: byte {error.start} is 0x{data[error.start]:02x}") from None


@dataclass(frozen=True)
class Number:
    """A number of fixed size, most significant byte first."""

    name: str
    type: pa.DataType
    size_bytes: int
    stored: str
    """numpy's name of how it lies in the record"""

    def decode(self, data: pa.Array) -> Decoded:
        whole = one_array(data).cast(pa.binary())
        lengths = pc.binary_length(whole)
        right = pc.fill_null(pc.equal(lengths, self.size_bytes), False)
        kept = pc.if_else(right, whole, pa.scalar(None, pa.binary()))
        zeros = pa.scalar(bytes(self.size_bytes), pa.binary())
        dense = b"".join(pc.fill_null(kept, zeros).to_pylist())
        numbers = np.frombuffer(dense, self.stored).astype(np.dtype(self.stored).newbyteorder("="))
        values = pa.array(numbers, self.type, mask=np.asarray(pc.is_null(kept)))
        return Decoded(values, self._reasons(lengths, right))

    def _reasons(self, lengths: pa.Array, right: pa.Array) -> pa.Array:
        said = pc.binary_join_element_wise(
            lengths.cast(pa.string()), f"bytes where {self.name} has {self.size_bytes}", " "
        )
        return pc.if_else(right, pa.scalar(None, pa.string()), said)

    def encode(self, values: pa.Array) -> pa.Array:
        whole = one_array(values).cast(self.type)
        dense = np.asarray(pc.fill_null(whole, pa.scalar(0, self.type))).astype(self.stored).tobytes()
        fixed = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(self.size_bytes), len(whole), [None, pa.py_buffer(dense)]
        )
        return pc.if_else(pc.is_valid(whole), fixed.cast(pa.binary()), pa.scalar(None, pa.binary()))


BYTES = Bytes()
TEXT = Text()
INT = Number("int", pa.int32(), 4, ">i4")
LONG = Number("long", pa.int64(), 8, ">i8")
DOUBLE = Number("double", pa.float64(), 8, ">f8")

PLAIN: dict[str, Bytes | Text | Number] = {
    "bytes": BYTES,
    "binary": BYTES,
    "text": TEXT,
    "string": TEXT,
    "int": INT,
    "int32": INT,
    "long": LONG,
    "int64": LONG,
    "double": DOUBLE,
    "float64": DOUBLE,
}


def plain(name: str) -> Bytes | Text | Number:
    """The format of this name, of those that need no schema."""
    found = PLAIN.get(name)
    if found is None:
        raise SchemaError(f"no format is called {name!r}; those without a schema are {', '.join(PLAIN)}")
    return found
