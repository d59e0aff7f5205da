"""Share groups: what a member is handed has no order, and what nobody is handed is lost."""

import pytest
from scripts import history

from penstock.sim.check.checker import check
from penstock.sim.check.history import from_lines, to_lines

WRITTEN = """
    p1 ok send x:a@0 x:b@1 x:c@2
    p2 ok poll x:a@0 x:b@1 x:c@2"""


def verdict(text, **options):
    return check(history(WRITTEN + text), shared=("x",), **options)


def test_records_may_be_handed_out_in_any_order_and_again():
    told = verdict("""
    m1 ok take x:c@2 x:a@0
    m2 ok take x:b@1 x:a@0""")
    assert told.counts == {} and told.allowed == {}


def test_a_record_that_no_member_got_is_told_by_name():
    assert verdict("\n m1 ok take x:a@0 x:c@2").counts == {"never-taken": 1}


def test_unless_it_was_handed_out_too_often_or_the_run_ended_early():
    text = "\n m1 ok take x:a@0 x:c@2"
    assert verdict(text, given_up={("x", 1)}).counts == {}
    assert verdict(text, read_to_end=False).counts == {}


def test_a_record_of_which_nobody_knows_whether_it_was_written_may_be_missing():
    told = check(history("p1 info send x:a\n m1 ok take"), shared=("x",))
    assert told.counts == {}


TAKEN = "\n m1 ok take x:a@0 x:b@1 x:c@2"


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("\n m1 ok acknowledge x:b@1\n m2 ok take x:b@1", 1),
        ("\n m1 info acknowledge x:b@1\n m2 ok take x:b@1", 0),
        ("\n m2 begins\n m1 ok acknowledge x:b@1\n m2 ok take x:b@1", 0),
        ("\n m1 ok acknowledge x:b@1\n m2 ok take x:c@2", 0),
    ],
)
def test_what_comes_again_after_it_was_accepted_is_counted(text, again):
    told = verdict(TAKEN + text)
    assert told.counts == {}
    assert told.allowed.get("accepted-again", 0) == again


def test_a_phantom_is_one_for_share_groups_too():
    assert verdict(TAKEN + "\n m2 ok take x:z@7").counts == {"phantom": 1}


def test_what_only_members_got_counts_as_never_read():
    told = check(history("p1 ok send x:a@0 x:b@1\n p2 ok poll x:b@1\n m1 ok take x:a@0 x:b@1"))
    assert set(told.counts) == {"lost-write", "unseen"}


def test_acknowledgements_are_kept_as_text():
    recorded = history(WRITTEN + TAKEN + "\n m1 ok acknowledge x:b@1")
    assert list(from_lines(to_lines(recorded))) == list(recorded)
