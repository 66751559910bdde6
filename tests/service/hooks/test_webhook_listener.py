import http.client
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks.webhooks import Webhook

from service.clock import SystemClock
from service.deliveries.channels import signing
from service.errors import ConfigurationError
from service.hooks.webhook_listener import WakeUp, WebhookListener
from service.shutdown import SignalShutdownFlag
from tests.service.deliveries.sample_messages import KEY, SECRET

BODY = b'{"type":"resubmission.requested","data":{}}'


@pytest.fixture
def stop() -> Iterator[SignalShutdownFlag]:
    made = SignalShutdownFlag()
    yield made
    made.close()


@pytest.fixture
def signal_event(stop: SignalShutdownFlag) -> Iterator[WakeUp]:
    made = WakeUp(stop)
    yield made
    made.close()


def waited(signal_event: WakeUp, seconds: float) -> float:
    before = time.monotonic()
    signal_event.wait(seconds)
    return time.monotonic() - before


def test_a_webhook_or_the_shutdown_ends_the_wait(signal_event: WakeUp, stop: SignalShutdownFlag) -> None:
    assert waited(signal_event, 0.05) >= 0.04
    for _ in range(70_000):  # more than a pipe holds
        signal_event.notify()
    assert waited(signal_event, 120) < 60
    timer = threading.Timer(0.1, stop.set)
    timer.start()
    while not stop.is_set():
        signal_event.wait(30)
    timer.join()


def signed(at: datetime | None = None, key: bytes = KEY, message_id: str = "msg_1") -> dict[str, str]:
    return signing.headers([key], message_id, at or datetime.now(UTC), BODY)


@pytest.fixture
def rung() -> list[int]:
    return []


@pytest.fixture
def port(rung: list[int]) -> Iterator[int]:
    with WebhookListener("127.0.0.1", 0, lambda: [bytes(32), KEY], lambda: rung.append(1), SystemClock()) as listener:
        yield listener.port


def post(port: int, headers: dict[str, str], body: bytes = BODY, method: str = "POST", host: str = "127.0.0.1") -> int:
    connection = http.client.HTTPConnection(host, port, timeout=120)
    connection.request(method, "/", body, headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_it_listens_on_an_address_of_ipv6(rung: list[int]) -> None:
    with WebhookListener("::1", 0, lambda: [KEY], lambda: rung.append(1), SystemClock()) as listener:
        assert post(listener.port, signed(), host="::1") == 204
    assert rung == [1]


def test_a_signed_webhook_wakes_the_hook(port: int, rung: list[int]) -> None:
    assert post(port, signed()) == 204
    reference = Webhook(SECRET)
    now = datetime.now(UTC)
    theirs = {
        "Webhook-Id": "msg_2",
        "Webhook-Timestamp": str(int(now.timestamp())),
        "Webhook-Signature": reference.sign("msg_2", now, BODY.decode()),
    }
    assert post(port, theirs) == 204
    assert rung == [1, 1]


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (lambda: signed(key=bytes(range(1, 33))), BODY),
        (signed, BODY + b" "),
        (lambda: signed(datetime.now(UTC) - timedelta(minutes=6)), BODY),
        (lambda: signed(datetime.now(UTC) + timedelta(minutes=6)), BODY),
        (dict, BODY),
        (lambda: signed() | {"webhook-timestamp": "now"}, BODY),
        (lambda: signed() | {"webhook-timestamp": "9" * 40}, BODY),
        (lambda: signed() | {"webhook-signature": "v1a,AAAA v2,AAAA"}, BODY),
        (lambda: signed() | {"webhook-id": "msg_9"}, BODY),
        (lambda: signing.headers([KEY], "msg_1.2", datetime.now(UTC), BODY), BODY),
    ],
)
def test_a_webhook_without_a_recent_valid_signature_does_not_wake_the_hook(
    port: int, rung: list[int], headers: Callable[[], dict[str, str]], body: bytes
) -> None:
    assert post(port, headers(), body) == 401
    assert not rung


def test_too_large_requests_and_wrong_methods_are_refused(port: int, rung: list[int]) -> None:
    assert post(port, signed(), b"x" * (300 << 10)) == 413
    assert post(port, signed(), method="GET") == 501
    assert not rung


@pytest.mark.parametrize(("length", "status"), [("9" * 5_000, 413), ("٣", 400), ("-1", 400), ("1_0", 400)])
def test_the_length_of_a_stranger_is_no_unexpected_error(
    port: int, caplog: pytest.LogCaptureFixture, length: str, status: int
) -> None:
    """Python reads no number of more than 4,300 digits: each such request put a traceback in the log."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.putrequest("POST", "/")
    connection.putheader("content-length", length.encode())
    connection.endheaders()
    assert connection.getresponse().status == status
    connection.close()
    assert "could not be handled" not in caplog.text


def test_a_secret_that_became_unreadable_is_answered_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    rung: list[int] = []

    def unreadable() -> list[bytes]:
        raise ConfigurationError("/etc/faultline/secret can't be read")

    with WebhookListener("127.0.0.1", 0, unreadable, lambda: rung.append(1), SystemClock()) as listener:
        assert post(listener.port, signed()) == 503
    assert not rung
    assert "/etc/faultline/secret can't be read" in caplog.text


def test_an_unexpected_error_is_logged_as_such(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> None:
        raise KeyError("odd")

    with (
        WebhookListener("127.0.0.1", 0, lambda: [KEY], broken, SystemClock()) as listener,
        pytest.raises((http.client.HTTPException, ConnectionError)),
    ):
        post(listener.port, signed())
    assert "could not be handled" in caplog.text
