from datetime import timedelta

from service.deliveries.channels.channel import body, message_id, summary
from tests.service.deliveries.sample_messages import due


def test_an_id_is_the_same_on_each_try_and_no_other_message_s() -> None:
    first = due(7)
    assert message_id(first) == message_id(due(7, attempts=5))
    others = [due(8), due(7, created_at=first.created_at + timedelta(seconds=1)), due(7, type="failure.revised")]
    assert len({message_id(one) for one in [first, *others]}) == 4
    assert "." not in message_id(first)


def test_a_body_is_small_and_has_the_three_fields() -> None:
    made = body(due(7))
    assert made.startswith(b'{"type":"failure.diagnosed","timestamp":"2026-11-20T12:00:00.000Z","data":{')
    assert len(made) < 20_000


def test_a_summary_says_which_job_and_what() -> None:
    assert summary(due(7)) == "orion/7 failed (user, USER.1): FileNotFoundError: /data/x"
