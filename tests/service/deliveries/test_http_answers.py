from datetime import UTC, datetime

import pytest

from service.deliveries.channels.http import Answer
from service.deliveries.channels.http_answers import of_webhook

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "kind", "throttled"),
    [
        (200, "sent", False),
        (204, "sent", False),
        (301, "retry", False),
        (304, "retry", False),
        (400, "retry", False),
        (410, "gone", False),
        (429, "retry", True),
        (500, "retry", False),
        (503, "retry", True),
    ],
)
def test_only_2xx_is_success(status: int, kind: str, throttled: bool) -> None:
    outcome = of_webhook(Answer(status, "3", ""), NOW)
    assert (outcome.kind, outcome.throttled) == (kind, throttled)
    assert outcome.retry_after_s == (3 if kind == "retry" else None)


def test_the_answer_of_the_receiver_is_kept_short_and_without_secrets() -> None:
    output = of_webhook(Answer(500, None, "password=hunter2hunter2 " + "x" * 9000), NOW).detail
    assert output.startswith("500: ")
    assert "hunter2" not in output
    assert len(output) <= 300


def test_a_secret_is_removed_before_the_answer_is_cut() -> None:
    secret = "ghp_aB1cDeFgHiJkLmNoPqRsTuVwXyZ123456789"
    output = of_webhook(Answer(500, None, " " * 385 + f"got {secret}"), NOW).detail
    assert output == "500: got [redacted]"
