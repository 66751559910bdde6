import random

from hypothesis import given
from hypothesis import strategies as st

from service.backoff import Backoff


@given(st.integers())
def test_pauses_grow_to_a_limit_and_are_short_after_a_reset(seed: int) -> None:
    backoff = Backoff(first=1.0, longest=10.0, chance=random.Random(seed))
    lengths = [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    for length in lengths:
        assert length / 2 <= backoff.next() <= length
    backoff.reset()
    assert backoff.next() <= 1.0


def test_no_two_workers_pause_equally_long() -> None:
    assert len({Backoff().next() for _ in range(10)}) == 10
