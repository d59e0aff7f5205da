"""Which partition a row goes to."""

from __future__ import annotations

import pyarrow as pa

from penstock.columnar.placement import Placement
from penstock.wire.partitioners import partition_of_key


def rows(**columns: list[object]) -> pa.RecordBatch:
    types = {"partition": pa.int32(), "key": pa.binary(), "value": pa.binary()}
    return pa.RecordBatch.from_pydict({name: pa.array(content, types[name]) for name, content in columns.items()})


def test_what_a_row_asks_for_comes_before_its_key() -> None:
    batch = rows(partition=[5, None, 0], key=[b"a", b"b", None])
    assert Placement().choose("t", batch, 8, 1000).tolist() == [5, partition_of_key(b"b", 8), 0]


def test_a_number_that_is_no_partition_is_left_for_the_caller_to_refuse() -> None:
    assert Placement().choose("t", rows(partition=[-1, 9], key=[b"a", b"b"]), 3, 1000).tolist() == [-1, 9]


def test_rows_without_keys_take_turns_in_runs_of_a_batch() -> None:
    batch = rows(value=[bytes(96)] * 10)
    assert batch.nbytes // batch.num_rows == 100
    placement = Placement()
    assert placement.choose("t", batch, 3, 400).tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]
    assert placement.choose("t", batch, 3, 400).tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]
    assert placement.choose("t", batch.slice(0, 1), 3, 400).tolist() == [0]
    assert placement.choose("t", batch.slice(0, 1), 3, 400).tolist() == [1]


def test_an_empty_key_is_a_key() -> None:
    assert Placement().choose("t", rows(key=[b"", b""]), 7, 1000).tolist() == [partition_of_key(b"", 7)] * 2
