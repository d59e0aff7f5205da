"""The store: what is written is read, in order, after a restart too."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.tables import Entry, StoreDamaged, TableError
from penstock.tables.changes import Reached
from penstock.tables.entries import HEAD
from penstock.tables.store import Identity, Store

IDENTITY = Identity("cluster", "topic", "00")


@pytest.fixture
def opened(tmp_path):
    stores = []

    def make(**arguments):
        stores.append(Store(str(tmp_path), **arguments))
        if stores[-1].about is None:
            stores[-1].begin_anew(IDENTITY, 0)
        return stores[-1]

    yield make
    for store in stores:
        store.close()


def change(value, offset=0, partition=0, timestamp_ms=0):
    return HEAD.pack(timestamp_ms + 1, partition, offset), value


def keys(store, start=b"", end=None, limit=1000, after=None):
    return [entry.key for entry in store.page(start, end, limit, after=after).entries]


def test_entries_and_how_far_they_go_are_there_after_a_restart(opened):
    first = opened()
    first.apply({b"a": change(b"1", 7, 2, 1000), b"": change(b"", 8, 2)}, {2: Reached(9, 4)}, 123)
    first.close()
    store = opened()
    assert store.get(b"a") == Entry(b"a", b"1", 1000, 2, 7)
    assert store.get(b"") == Entry(b"", b"", 0, 2, 8)
    assert store.about.reached == {2: (9, 4)}
    assert store.about.caught_up_ms == 123
    assert store.about.identity == IDENTITY


def test_a_tombstone_takes_a_key_out(opened):
    store = opened()
    store.apply({b"a": change(b"1"), b"b": change(b"2")}, {})
    store.apply({b"a": change(None, 1), b"never": change(None, 2)}, {})
    assert store.get(b"a") is None
    assert store.count() == 1


def test_a_record_of_another_partition_counts_only_if_it_is_as_late(opened):
    store = opened()
    store.apply({b"a": change(b"new", 5, partition=1, timestamp_ms=20)}, {})
    store.apply({b"a": change(b"old", 9, partition=0, timestamp_ms=10)}, {})
    assert store.get(b"a").value == b"new"
    store.apply({b"a": change(None, 10, partition=0, timestamp_ms=19)}, {})
    assert store.get(b"a").value == b"new"
    store.apply({b"a": change(b"newer", 11, partition=0, timestamp_ms=20)}, {})
    assert store.get(b"a").value == b"newer"


def test_several_keys_are_of_one_moment_and_in_the_order_asked(opened):
    store = opened()
    store.apply({b"a": change(b"1"), b"b": change(b"2")}, {})
    assert [entry and entry.value for entry in store.get_many([b"b", b"x", b"a", b"b"])] == [b"2", None, b"1", b"2"]


def test_pages_go_on_where_the_last_ended(opened):
    store = opened()
    store.apply({b"%d" % n: change(b"") for n in range(10)}, {})
    page = store.page(b"2", b"8", 4)
    assert ([entry.key for entry in page.entries], page.more) == ([b"2", b"3", b"4", b"5"], True)
    page = store.page(b"2", b"8", 4, after=b"5")
    assert ([entry.key for entry in page.entries], page.more) == ([b"6", b"7"], False)
    assert keys(store, after=b"3", end=b"5") == [b"4"]


def test_a_page_ends_early_where_its_entries_are_large(opened):
    store = opened()
    store.apply({b"%d" % n: change(bytes(3_000_000)) for n in range(5)}, {})
    page = store.page(b"", None, 5)
    assert ([entry.key for entry in page.entries], page.more) == ([b"0", b"1", b"2"], True)


LONG = st.builds(lambda stem, tail: stem * 240 + tail, st.sampled_from([b"ab", b"ac"]), st.binary(max_size=3))


@settings(max_examples=60, deadline=None)
@given(st.sets(st.binary(max_size=3) | LONG, max_size=30), st.binary(max_size=3) | LONG, st.binary(max_size=3) | LONG)
def test_ranges_are_in_the_order_of_keys_whatever_their_length(tmp_path_factory, some, start, end):
    store = Store(str(tmp_path_factory.mktemp("store")))
    try:
        store.begin_anew(IDENTITY, 0)
        store.apply({key: change(key) for key in some}, {})
        assert keys(store) == sorted(some)
        assert keys(store, start, end) == [key for key in sorted(some) if start <= key < end]
        assert keys(store, after=start) == [key for key in sorted(some) if key > start]
        assert [store.get(key).value for key in some] == list(some)
    finally:
        store.close()


def test_the_map_grows_and_readers_see_all_of_it(opened):
    store = opened(map_bytes=200_000)
    store.apply({b"first": change(b"1")}, {})
    done = threading.Event()
    seen = []

    def read():
        while not done.is_set():
            seen.append(store.get(b"first").value)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for turn in range(20):
            store.apply({b"%d-%d" % (turn, n): change(bytes(500), n) for n in range(300)}, {0: Reached(turn)})
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert store.count() == 6001
    assert set(seen) == {b"1"}
    assert store.size_bytes() > 2_000_000


def test_a_store_that_outgrew_its_first_map_opens_again(opened):
    store = opened(map_bytes=200_000)
    store.apply({b"%d" % n: change(bytes(1000)) for n in range(2000)}, {})
    store.close()
    assert opened(map_bytes=200_000).count() == 2000


def test_begun_anew_it_is_empty(opened):
    store = opened()
    store.apply({b"a": change(b"1")}, {0: Reached(5)})
    store.begin_anew(Identity("cluster", "topic", "01"), 0)
    assert store.count() == 0
    assert store.about.reached == {}
    assert store.about.identity.topic_id == "01"


def test_entries_from_before_the_start_of_their_log_are_swept_out(opened, monkeypatch):
    monkeypatch.setattr("penstock.tables.store.SWEEP_ENTRIES_MAX", 7)
    store = opened()
    store.apply({b"%03d" % n: change(b"", n, partition=n % 2) for n in range(100)}, {})
    starts, after, turns = {0: 50, 1: 80}, None, 0
    while turns == 0 or after is not None:
        after = store.sweep(starts, after)
        turns += 1
    assert turns > 10
    assert [int(key) for key in keys(store)] == [n for n in range(100) if n >= starts[n % 2]]
    assert store.about.swept == starts


@pytest.mark.parametrize("harm", ["cut", "overwritten", "empty of sense"])
def test_a_damaged_file_is_told(opened, tmp_path, harm):
    store = opened()
    store.apply({b"%d" % n: change(bytes(1000)) for n in range(2000)}, {})
    store.close()
    file = tmp_path / "data.mdb"
    data = file.read_bytes()
    if harm == "cut":
        file.write_bytes(data[: len(data) // 2])
    elif harm == "overwritten":
        file.write_bytes(b"\xff" * 20_000 + data[20_000:])
    else:
        file.write_bytes(b"this is no store")
    with pytest.raises(StoreDamaged, match="remove the directory"):
        Store(str(tmp_path))


def test_a_damaged_value_is_told_and_not_served(opened, tmp_path):
    store = opened()
    store.apply({b"key": change(b"the value of it")}, {})
    store.close()
    file = tmp_path / "data.mdb"
    file.write_bytes(file.read_bytes().replace(b"the value of it", b"another value, "))
    store = opened()
    for read in (lambda: store.get(b"key"), lambda: store.get_many([b"key"]), lambda: store.page(b"", None, 1)):
        with pytest.raises(StoreDamaged, match="checksum"):
            read()


def test_a_store_of_a_later_format_is_not_touched(opened, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("penstock.tables.store.FORMAT", 2)
        opened().close()
    with pytest.raises(TableError, match="format 2"):
        Store(str(tmp_path))


def test_a_closed_store_says_so(opened):
    store = opened()
    store.close()
    with pytest.raises(TableError, match="cannot be read"):
        store.get(b"a")
