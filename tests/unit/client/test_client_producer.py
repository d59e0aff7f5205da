"""What a producer does with the library's answers."""

from penstock.client import Producer


class Library:
    """Its threads fail what they were sending a while after they were told to."""

    def __init__(self):
        self.under_way = 3
        self.given_up = False

    def __len__(self):
        return self.under_way

    def flush(self, timeout_s):
        return self.under_way

    def purge(self):
        self.given_up = True

    def poll(self, timeout_s):
        if self.given_up and timeout_s:
            self.under_way -= 1


def test_a_record_that_is_given_up_is_reported_before_the_producer_is_closed():
    producer = Producer("localhost:1")
    producer._producer = library = Library()
    producer.close(0)
    assert len(library) == 0
