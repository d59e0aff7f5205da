"""JSON values as columns.

Arrow's own reader is three times as fast as anything row by row, but it reads lines of a file, and one wrong line fails
them all. So each value is put on a line of its own as `{"v":[[[VALUE]]]}`. Behind a value that ends too early or too
late, `]]]}\\n{"v":[[[` has no meaning in JSON: two values cannot flow into one. One that holds several shows in the
lengths of the lists or in the number of lines, and one that closes the lists to smuggle another member in must have
`]]],` in it: such values are not given to that reader. What it refuses goes again in small chunks, and the chunks it
refuses go row by row by the rules of `json_rows`, which accept all that it accepts, and give reasons.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from penstock.schemas.completeness import incomplete, requires, retyped
from penstock.schemas.errors import Undecodable
from penstock.schemas.formats import Decoded, by_row, fine, gathered, one_array
from penstock.schemas.json_rows import JsonRows
from penstock.schemas.json_schema import RAW
from penstock.schemas.pylists import pylist

LISTS = 3
OPENING, CLOSING = b'{"v":' + b"[" * LISTS, b"]" * LISTS + b"}\n"
CLOSES_THE_LISTS = r"\]\s*\]\s*\]\s*,"
BLOCK_BYTES = 1 << 20
CHUNK_ROWS = 512
"""What is read row by row when one of them is wrong; a call of Arrow's reader costs as much as reading 50 rows."""
ROWS_MAX_BYTES = 1 << 30
"""Arrow counts the bytes of a column in 32 bits: what is larger is read in parts."""


class Json:
    """JSON of one Arrow type: a struct for objects, or any other type that `json_rows` knows."""

    name = "json"

    def __init__(self, kind: pa.DataType | pa.Field) -> None:
        self.field = kind if isinstance(kind, pa.Field) else pa.field("value", kind)
        self._rows = JsonRows(self.field)
        self._carried = _carried(self.field)
        self._strict = requires(self.field.type)

    @property
    def type(self) -> pa.DataType:
        return self.field.type

    def __reduce__(self) -> tuple[Callable[[pa.Field], Json], tuple[pa.Field]]:
        return (Json, (self.field,))

    def decode(self, data: pa.Array) -> Decoded:
        whole = one_array(data).cast(pa.binary())
        if whole.nbytes > ROWS_MAX_BYTES and len(whole) > 1:
            middle = len(whole) // 2
            return gathered([self.decode(whole[:middle]), self.decode(whole[middle:])], self.type)
        if self._carried is None:
            return self._by_row(whole)
        values = self._at_once(whole)
        if values is not None:
            return fine(values)
        return gathered(
            [self._chunk(whole[at : at + CHUNK_ROWS]) for at in range(0, len(whole), CHUNK_ROWS)], self.type
        )

    def _chunk(self, data: pa.Array) -> Decoded:
        values = self._at_once(data)
        return self._by_row(data) if values is None else fine(values)

    def _by_row(self, data: pa.Array) -> Decoded:
        return by_row(pylist(data), self._rows, self.type)

    def _at_once(self, data: pa.Array) -> pa.Array | None:
        """The values, if every one of them is well; None if any is not."""
        if len(data) == data.null_count:
            return pa.nulls(len(data), self.type)
        try:
            present = data.cast(pa.string()).drop_null()  # Arrow's reader does not check that a text is UTF-8
            values = self._read_lines(present)
        except (pa.ArrowException, UnicodeDecodeError):
            return None
        if values is None or (self._strict and pc.any(incomplete(values, self.type)).as_py()):
            return None
        if not data.null_count:
            return values
        places = np.cumsum(np.asarray(pc.is_valid(data))) - 1
        return values.take(pa.array(places, pa.int64(), mask=np.asarray(pc.is_null(data))))

    def _read_lines(self, texts: pa.Array) -> pa.Array | None:
        if pc.any(pc.match_substring_regex(texts, CLOSES_THE_LISTS)).as_py():
            return None
        joined = pc.binary_join(pa.LargeListArray.from_arrays([0, len(texts)], texts), (CLOSING + OPENING).decode())
        lines = b"".join((OPENING, joined[0].as_buffer(), CLOSING))
        # Arrow cuts its blocks at line ends: values that hold some of their own are read in one block.
        cut = lines.count(b"\n") == len(texts) and b"\r" not in lines
        block_bytes = BLOCK_BYTES if cut else len(lines) + 1
        table = arrow_json.read_json(
            pa.BufferReader(lines),
            read_options=arrow_json.ReadOptions(use_threads=True, block_size=block_bytes),
            parse_options=arrow_json.ParseOptions(explicit_schema=self._carried, unexpected_field_behavior="ignore"),
        )
        values = one_array(table.column("v"))
        for _ in range(LISTS):
            if (
                len(values) != len(texts)
                or not pc.all(pc.equal(pc.list_value_length(values), 1), skip_nulls=False).as_py()
            ):
                return None
            values = values.flatten()
        return retyped(values, self.type)

    def encode(self, values: pa.Array) -> pa.Array:
        write = _writing(self.field)
        encoder = msgspec.json.Encoder(decimal_format="number")
        rows: list[bytes | None] = []
        for row, value in enumerate(pylist(one_array(values))):
            try:
                rows.append(None if value is None else encoder.encode(write(value) if write else value))
            except (TypeError, ValueError, msgspec.MsgspecError) as error:
                raise Undecodable(f"row {row} has no JSON: {error}") from None
        return pa.array(rows, pa.binary())


def _carried(field: pa.Field) -> pa.Schema | None:
    """What Arrow's reader is asked for: the same with dates as texts, all nullable; None if it cannot read such."""
    inner = _carrier(field)
    return None if inner is None else pa.schema([pa.field("v", pa.list_(pa.list_(pa.list_(inner.type))))])


def _carrier(field: pa.Field) -> pa.Field | None:
    kind = field.type
    if field.metadata == RAW or pa.types.is_map(kind) or pa.types.is_binary(kind) or pa.types.is_time(kind):
        return None
    if pa.types.is_date(kind):
        return pa.field(field.name, pa.string())
    if pa.types.is_list(kind):
        item = _carrier(kind.value_field)
        return None if item is None else pa.field(field.name, pa.list_(item))
    if pa.types.is_struct(kind):
        members = [_carrier(kind.field(at)) for at in range(kind.num_fields)]
        whole = [one for one in members if one is not None]
        return pa.field(field.name, pa.struct(whole)) if len(whole) == len(members) else None
    return pa.field(field.name, kind)


def _writing(field: pa.Field) -> Callable[[Any], Any] | None:
    """What makes of Arrow's Python values those that JSON is written from; None where they are the same.

    Maps come from Arrow as lists of pairs, and JSON kept as text must not be quoted again.
    """
    kind = field.type
    if field.metadata == RAW:
        return lambda value: None if value is None else msgspec.Raw(value.encode())
    if pa.types.is_map(kind):
        item = _writing(kind.item_field) or _same
        return lambda pairs: None if pairs is None else {name: item(one) for name, one in pairs}
    if pa.types.is_list(kind):
        item_of = _writing(kind.value_field)
        return item_of and (lambda items: None if items is None else [item_of(one) for one in items])
    if pa.types.is_struct(kind):
        found = [(kind.field(at).name, _writing(kind.field(at))) for at in range(kind.num_fields)]
        changed = [(name, write) for name, write in found if write]
        if changed:
            return lambda value: (
                None if value is None else value | {name: write(value[name]) for name, write in changed}
            )
    return None


def _same(value: Any) -> Any:
    return value
