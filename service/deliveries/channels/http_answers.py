"""Outcomes of HTTP responses."""

from collections.abc import Callable, Mapping
from datetime import datetime

from classifiers.redaction import redact
from service.deliveries.channels.channel import SENT, Outcome
from service.deliveries.channels.http import Answer, NoAnswer, Poster
from service.deliveries.schedule import retry_after_s

GONE = 410
# Standard Webhooks treats 429, 502 and 504 as a request to send less; 503 carries Retry-After by RFC 9110.
THROTTLING = frozenset({429, 502, 503, 504})


def post(
    poster: Poster,
    url: str,
    content: bytes,
    headers: Mapping[str, str],
    now: datetime,
    meaning: Callable[[Answer, datetime], Outcome],
) -> Outcome:
    """Send a request and return its outcome."""
    try:
        answer = poster.post(url, content, headers)
    except NoAnswer as error:
        return Outcome("retry", redact(str(error)))
    return meaning(answer, now)


def of_webhook(answer: Answer, now: datetime) -> Outcome:
    """By Standard Webhooks: 2xx is success, 410 disables the endpoint, everything else is retried."""
    if 200 <= answer.status < 300:  # noqa: PLR2004 - the statuses of success
        return SENT
    if answer.status == GONE:
        return Outcome("gone", "410: the receiver accepts no more messages")
    return _again(answer, now)


def of_service(answer: Answer, now: datetime) -> Outcome:
    """For a service with a documented API: a bad request stays one, however often it is sent."""
    if 200 <= answer.status < 300:  # noqa: PLR2004 - as above
        return SENT
    if answer.status in {400, 413, 422}:
        return Outcome("refused", _detail(answer))
    return _again(answer, now)


def _again(answer: Answer, now: datetime) -> Outcome:
    wait = retry_after_s(answer.retry_after, now)
    return Outcome("retry", _detail(answer), wait, throttled=answer.status in THROTTLING)


def _detail(answer: Answer) -> str:
    if 300 <= answer.status < 400:  # noqa: PLR2004 - the statuses of redirection
        return f"{answer.status}: redirects are not followed"
    body = " ".join(redact(answer.text).split())  # before it is cut: half of a secret has no known form
    return (f"{answer.status}: {body}" if body else str(answer.status))[:300]
