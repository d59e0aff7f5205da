"""The short account."""

from penstock.sim.check.summary import summarize


def test_everything_once_and_in_order():
    account = summarize({"x": [0, 1, 2], "y": [0]}, {"x": 3, "y": 1}, {"x": [0, 1, 2], "y": [0]})
    assert (account.acked, account.read, account.clean) == (4, 4, True)


def test_unacked_records_may_be_there_or_not():
    assert summarize({"x": [0, 1]}, {"x": 4}, {"x": [0, 1, 2]}).clean


def test_each_fault_is_counted():
    account = summarize({"x": [0, 1, 2, 3]}, {"x": 4}, {"x": [0, 2, 1, 2, 9]})
    assert (account.lost, account.duplicated, account.out_of_order, account.phantom) == (1, 1, 1, 1)
    assert not account.clean


def test_a_key_of_which_nothing_was_read():
    assert summarize({"x": [0, 1]}, {"x": 2}, {}).lost == 2
