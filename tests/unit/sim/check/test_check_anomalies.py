"""One hand-made history for each anomaly, beside the one that is just not one."""

import pytest
from scripts import history

from penstock.sim.check.checker import check
from penstock.sim.check.facts import MalformedHistory


def names(text, **options):
    return sorted(check(history(text), **options).counts)


def only(text, **options):
    """The single anomaly of a history."""
    (anomaly,) = check(history(text), **options).anomalies
    return anomaly


CLEAN = {
    "nothing at all": "",
    "sent and read": """
        p1 ok send x:a@0 x:b@1
        p2 ok poll x:a@0
        p2 ok poll x:b@1""",
    "gaps in the offsets, as markers of transactions leave them": """
        p1 ok send x:a@0
        p1 ok send x:b@7
        p2 ok poll x:a@0 x:b@7""",
    "an unknown outcome that took effect": """
        p1 info send x:a
        p2 ok poll x:a@0""",
    "an unknown outcome that did not": """
        p1 info send x:a
        p2 ok send x:b@0
        p3 ok poll x:b@0""",
    "a failure that nobody read": """
        p1 fail send x:a
        p2 ok poll""",
    "several producers that take turns": """
        p1 begins
        p2 begins
        p1 ok send x:a@0 x:c@2
        p2 ok send x:b@1 x:d@3
        p3 ok poll x:a@0 x:b@1 x:c@2 x:d@3""",
    "two readers, each from its own beginning": """
        p1 ok send x:a@0 x:b@1
        p2 ok poll x:a@0 x:b@1
        p3 ok poll x:a@0
        p3 ok poll x:b@1""",
    "a key that was given back and taken up elsewhere": """
        p1 ok send x:a@0 x:b@1 x:c@2
        p2 ok poll x:a@0
        p2 ok assign y
        p2 ok assign x
        p2 ok poll x:c@2
        p3 ok poll x:a@0 x:b@1 x:c@2""",
    "a client that crashed and began again": """
        p1 ok send x:a@0 x:b@1
        p2 ok poll x:a@0 x:b@1
        p2 ok crash
        p2 ok poll x:a@0""",
    "a failed poll that is repeated": """
        p1 ok send x:a@0 x:b@1
        p2 ok poll x:a@0
        p2 fail poll x:b@1
        p2 ok poll x:b@1""",
    "a transaction that reads one key and writes another": """
        p1 ok send x:a@0
        p2 ok txn y:b@0 < x:a@0
        p3 ok poll y:b@0""",
    "acks without offsets": """
        p1 ok send x:a
        p1 ok send x:b
        p2 ok poll x:a@0 x:b@1""",
}


@pytest.mark.parametrize("text", CLEAN.values(), ids=CLEAN.keys())
def test_clean(text):
    verdict = check(history(text))
    assert verdict.valid, str(verdict)


def test_an_offset_is_told_with_two_values():
    found = only("""
        p1 ok send x:a@0
        p2 info send x:b
        p3 ok poll x:a@0
        p4 ok poll x:b@0""")
    assert (found.name, found.key) == ("inconsistent-offsets", "x")
    assert "offset 0 holds 'a' and 'b'" in found.text
    assert [one.process for one in found.operations] == ["p3", "p4"]


def test_an_ack_with_another_offset_than_the_readers():
    assert names("p1 ok send x:a@5\np2 ok poll x:a@0") == ["duplicate"]


def test_a_value_is_there_twice():
    found = only("""
        p1 ok send x:a@0
        p2 ok poll x:a@0
        p3 ok poll x:a@1""")
    assert (found.name, found.text) == ("duplicate", "'a' is at offsets 0, 1")


def test_a_reader_that_meets_a_value_twice_goes_back():
    assert names("p1 ok send x:a@0\np2 ok poll x:a@0 x:a@1") == ["duplicate", "int-nonmonotonic-poll"]


def test_a_failed_write_was_read():
    found = only("p1 fail send x:a\np2 ok poll x:a@0")
    assert found.name == "G1a"
    assert [one.process for one in found.operations] == ["p1", "p2"]


def test_a_failed_write_may_be_seen_by_a_poll_that_failed_too():
    assert names("p1 fail send x:a\np2 fail poll x:a@0") == []


def test_a_transaction_reads_what_it_has_not_committed():
    assert names("p1 ok txn x:a@0 < x:a@0") == ["precommitted-read"]


def test_a_value_that_nobody_sent():
    assert names("p1 ok poll x:a@0") == ["phantom"]


def test_an_acked_record_that_readers_passed():
    found = only(
        """
        p1 ok send x:a@0
        p1 ok send x:b@1
        p2 ok poll x:b@1""",
        read_to_end=False,
    )
    assert found.name == "lost-write"
    assert found.text == "'a' at offset 0 was never read, 'b' after it was"
    assert [one.process for one in found.operations] == ["p1", "p2"]


def test_a_record_that_nobody_reached_is_not_lost_yet():
    text = """
        p1 ok send x:a@0
        p1 ok send x:b@1
        p2 ok poll x:a@0"""
    assert names(text, read_to_end=False) == []
    assert names(text, read_to_end=True) == ["unseen"]


def test_what_was_read_of_an_unknown_transaction_obliges_the_rest_of_it():
    """`y` proves that the transaction was committed; its record in x stands before one that was read."""
    text = """
        p1 info txn x:a@0 y:b@0
        p2 ok send x:c@1
        p3 ok poll x:c@1 y:b@0"""
    assert names(text, read_to_end=False) == ["lost-write"]


def test_an_unknown_write_that_was_passed_is_not_lost():
    text = """
        p1 info send x:a@0
        p2 ok send x:b@1
        p3 ok poll x:b@1"""
    assert names(text) == []


def test_a_value_told_twice_counts_as_passed_with_its_last_place_only():
    """Told at 0 and at 2: a reader that reached 1 need not have met it."""
    text = """
        p1 ok send x:a@0
        p2 ok send x:b@1
        p3 info poll x:a@2
        p4 ok poll x:b@1"""
    assert "lost-write" not in names(text, read_to_end=False)


def test_an_acked_tail_that_is_gone():
    found = only("p1 ok send x:a@0\np2 ok poll")
    assert (found.name, found.text) == ("unseen", "'a' was acked and never read")


def test_a_poll_goes_on_too_far():
    text = """
        p1 ok send x:a@0 x:b@1 x:c@2
        p2 ok {how} x
        p2 ok poll x:a@0
        p2 ok poll x:c@2
        p3 ok poll x:a@0 x:b@1 x:c@2"""
    assert names(text.format(how="assign")) == ["poll-skip"]
    assert check(history(text.format(how="subscribe"))).allowed["poll-skip"] == 1
    assert names(text.format(how="subscribe")) == []


def test_a_poll_goes_back():
    text = """
        p1 ok send x:a@0 x:b@1
        p2 ok {how} x
        p2 ok poll x:a@0 x:b@1
        p2 ok poll x:b@1"""
    assert names(text.format(how="assign")) == ["nonmonotonic-poll"]
    assert names(text.format(how="subscribe")) == []


def test_one_who_subscribes_excuses_nobody_else():
    text = """
        p1 ok send x:a@0 x:b@1
        p3 ok subscribe x
        p2 ok poll x:a@0 x:b@1
        p2 ok poll x:a@0"""
    assert names(text) == ["nonmonotonic-poll"]


def test_a_poll_that_failed_does_not_move_the_place():
    text = """
        p1 ok send x:a@0 x:b@1 x:c@2
        p2 ok poll x:a@0
        p2 fail poll x:b@1 x:c@2
        p2 ok poll x:b@1 x:c@2"""
    assert names(text) == []


def test_within_one_poll_a_record_is_missing():
    text = """
        p1 ok send x:a@0 x:b@1 x:c@2
        p2 ok poll x:a@0 x:c@2 {rebalance}
        p3 ok poll x:a@0 x:b@1 x:c@2"""
    assert names(text.format(rebalance="")) == ["int-poll-skip"]
    assert names(text.format(rebalance="~x")) == []


def test_within_one_poll_the_order_is_wrong():
    text = """
        p1 ok send x:a@0 x:b@1
        p2 ok poll x:b@1 x:a@0
        p3 ok poll x:a@0 x:b@1"""
    assert names(text) == ["int-nonmonotonic-poll"]


def test_a_process_sends_and_the_log_has_it_the_other_way_round():
    text = """
        p1 ok send x:a@1
        p1 ok send x:b@0
        p2 ok poll x:b@0 x:a@1"""
    found = only(text)
    assert (found.name, found.process) == ("nonmonotonic-send", "p1")


def test_the_order_of_sends_is_known_from_reading_alone():
    text = """
        p1 ok send x:a
        p1 info send x:b
        p2 ok poll x:b@0 x:a@1"""
    assert names(text) == ["nonmonotonic-send"]


def test_a_send_of_unknown_place_in_between_does_not_hide_it():
    text = """
        p1 ok send x:a@1
        p1 ok send x:b
        p1 ok send x:c@0
        p2 ok poll x:c@0 x:a@1"""
    assert names(text, read_to_end=False) == ["nonmonotonic-send"]


def test_within_one_operation_the_sends_are_out_of_order():
    text = """
        p1 ok send x:a@1 x:b@0
        p2 ok poll x:b@0 x:a@1"""
    assert names(text) == ["int-nonmonotonic-send"]


def test_another_producer_in_between_is_allowed():
    text = """
        p1 begins
        p2 ok send x:b@1
        p1 ok send x:a@0 x:c@2
        p3 ok poll x:a@0 x:b@1 x:c@2"""
    verdict = check(history(text))
    assert (verdict.valid, verdict.allowed) == (True, {"int-send-skip": 1})


def test_two_transactions_read_each_other():
    text = """
        p1 begins
        p2 begins
        p1 ok txn x:a@0 < y:b@0
        p2 ok txn y:b@0 < x:a@0"""
    found = only(text)
    assert found.name == "G1c"
    assert sorted(one.process for one in found.operations) == ["p1", "p2"]


def test_a_process_reads_what_it_sends_only_later():
    """p1 polls v first and sends the cause of it afterwards."""
    text = """
        p1 begins
        p1 ok poll y:b@0
        p1 ok send x:a@0
        p2 ok txn y:b@0 < x:a@0"""
    found = only(text, read_to_end=False)
    assert found.name == "G1c-process"


def test_a_reader_ended_before_the_writer_began():
    text = """
        p1 ok poll x:a@0
        p2 ok send x:a@0"""
    found = only(text)
    assert found.name == "G1c-realtime"
    assert "was read by" in found.text and "had ended before" in found.text


def test_an_unknown_outcome_has_no_end_in_real_time():
    """p1's poll never ended, so that it may have seen what was written later."""
    assert names("p1 info poll x:a@0\np2 ok send x:a@0", read_to_end=False) == []


def test_interleaved_writes_are_a_cycle_that_is_allowed():
    text = """
        p1 begins
        p2 begins
        p1 ok send x:a@0 x:c@2
        p2 ok send x:b@1
        p3 ok poll x:a@0 x:b@1 x:c@2"""
    verdict = check(history(text), write_order=True)
    assert verdict.valid
    assert verdict.allowed["G0"] == 1


def test_with_the_order_of_writes_a_cycle_through_a_read_is_allowed_too():
    """Both transactions wrote to x, p1 first; p1 read what p2 wrote to y."""
    text = """
        p1 begins
        p2 begins
        p2 ok txn x:b@1 y:c@0
        p1 ok txn x:a@0 < y:c@0
        p3 ok poll x:a@0 x:b@1"""
    assert check(history(text), write_order=True).allowed["G1c"] == 1
    assert names(text) == []


def test_writes_against_real_time_are_a_cycle_that_is_allowed():
    text = """
        p1 ok send x:b@1
        p2 ok send x:a@0
        p3 ok poll x:a@0 x:b@1"""
    assert check(history(text), write_order=True).allowed == {"G0-realtime": 1}


def test_the_end_of_a_run_leaves_an_unknown_outcome():
    verdict = check(history("p1 begins\np2 ok poll x:a@0\np1 ok send x:a@0").operations[:-1])
    assert verdict.valid
    assert verdict.shape == {"poll ok": 1, "send info": 1}


def test_a_value_sent_twice_is_a_mistake_of_the_recording():
    with pytest.raises(MalformedHistory, match="twice"):
        check(history("p1 ok send x:a@0\np2 ok send x:a@1"))


def test_many_of_a_kind_are_counted_and_a_few_are_shown():
    text = "\n".join(f"p1 ok send x:v{n}@{n}" for n in range(100))
    verdict = check(history(text))
    assert verdict.counts == {"unseen": 100}
    assert len(verdict.anomalies) == 8
    assert str(verdict).startswith("100 x unseen\n  unseen in 'x': 'v0' was acked and never read (operations 1)")


def test_staleness_is_the_time_since_something_newer_was_known():
    """A line is a nanosecond: b is known at 1; the poll that ends before it is invoked at 4."""
    text = """
        p1 ok send x:a@0
        p1 ok send x:b@1
        p2 ok poll y:c@0
        p3 ok send y:c@0
        p2 ok poll x:a@0"""
    lag = check(history(text)).worst_lag
    assert (lag.lag_ns, lag.key, lag.operation.process) == (3, "x", "p2")


def test_what_a_subscriber_met_again_is_told():
    text = """
        p1 ok send x:a@0 x:b@1
        p2 ok subscribe x
        p2 ok poll x:a@0 x:b@1
        p2 ok poll x:b@1"""
    verdict = check(history(text))
    assert (verdict.records_read, verdict.read_again) == (3, 1)
