import random
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.backoff import Backoff, retry_after_s, scheduled_pause
from tests.service.deliveries.sample_messages import SENDING

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)


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


def test_the_schedule_is_that_of_standard_webhooks() -> None:
    hours = 3600
    assert SENDING.schedule_s == (
        *(0, 5, 300, 1800),
        *(2 * hours, 5 * hours, 10 * hours, 14 * hours, 20 * hours, 24 * hours),
    )
    pauses = [scheduled_pause(SENDING.schedule_s, tries, jitter=0, chance=0) for tries in range(1, 11)]
    assert pauses == [*SENDING.schedule_s[1:], None]
    assert sum(SENDING.schedule_s) == 75 * hours + 35 * 60 + 5


@given(
    tries=st.integers(1, 30),
    jitter=st.floats(0, 1),
    chance=st.floats(0, 1),
    asked=st.none() | st.floats(0, 1e9),
)
def test_a_pause_is_never_shorter_than_the_schedule_or_what_was_asked_and_never_endless(
    tries: int, jitter: float, chance: float, asked: float | None
) -> None:
    pause = scheduled_pause(SENDING.schedule_s, tries, jitter=jitter, chance=chance, retry_after_s=asked)
    if tries >= len(SENDING.schedule_s):
        assert pause is None
        return
    assert pause is not None
    assert pause >= SENDING.schedule_s[tries]
    assert pause >= min(asked or 0, 86_400)
    assert pause <= 2 * 86_400


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120),
        (" 0 ", 0),
        ("Fri, 20 Nov 2026 10:01:00 GMT", 60),
        ("Fri, 20 Nov 2026 09:00:00 GMT", 0),
        (None, None),
        ("soon", None),
        ("-5", None),
        ("²", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, seconds: float | None) -> None:
    assert retry_after_s(header, NOW) == seconds


@given(st.text())
def test_no_retry_after_breaks_it(header: str) -> None:
    found = retry_after_s(header, NOW)
    assert found is None or found >= 0
