"""Requests against real receivers, good and bad."""

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path

import pytest

from service.deliveries.channels.http import Answer, NoAnswer, Refused, of_webhook, permitted
from tests.labs.need import need
from tests.service.deliveries.receivers import Receiver, receiver
from tests.service.deliveries.sample_messages import poster


@pytest.fixture
def good() -> Iterator[Receiver]:
    with receiver() as here:
        yield here


def test_what_is_sent_arrives_and_the_answer_comes_back(good: Receiver) -> None:
    good.status, good.headers, good.answer = 429, {"Retry-After": "7"}, b"slowly"
    answer = poster().post(good.url, b"{}", {"x-a": "b"})
    assert (answer.status, answer.retry_after, answer.text) == (429, "7", "slowly")
    [got] = good.got
    assert (got.path, got.body, got.headers["x-a"], got.headers["host"]) == (
        *("/hook", b"{}", "b"),
        good.url.removeprefix("http://").removesuffix("/hook"),
    )


def test_a_redirect_is_an_answer_and_is_not_followed(good: Receiver) -> None:
    good.status, good.headers = 302, {"Location": good.url}
    assert poster().post(good.url, b"{}", {}).status == 302
    assert len(good.got) == 1


def test_of_a_huge_answer_only_the_beginning_is_read(good: Receiver) -> None:
    good.answer = b"x" * 20_000_000
    assert poster(answer_bytes=1000).post(good.url, b"{}", {}).text == "x" * 1000


def test_a_slow_answer_ends_at_the_deadline(good: Receiver) -> None:
    over = threading.Event()
    good.before_answer = lambda: over.wait(60)
    with pytest.raises(NoAnswer, match=r"within 0\.2 s"):
        poster(timeout_s=0.2).post(good.url, b"{}", {})
    over.set()


def test_an_answer_that_drips_ends_at_the_deadline_too() -> None:
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            connection, _ = listening.accept()
            with connection:
                for byte in b"HTTP/1.1 200 OK\r\nx-long: " + b"y" * 1000:
                    if over.wait(0.05):
                        return
                    connection.send(bytes([byte]))

        thread = threading.Thread(target=drip)
        thread.start()
        started = time.monotonic()
        with pytest.raises(NoAnswer):
            poster(timeout_s=0.4).post(f"http://127.0.0.1:{listening.getsockname()[1]}/", b"{}", {})
        assert time.monotonic() - started < 25  # the whole answer would take 50
        over.set()
        thread.join()


def test_a_closed_port_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(NoAnswer, match="refused"):
        poster().post(f"http://127.0.0.1:{port}/", b"{}", {})


def test_a_name_that_leads_inside_is_not_connected_to(good: Receiver) -> None:
    inside = good.url.replace("http://127.0.0.1", "https://hook.example")
    with pytest.raises(NoAnswer, match="internal"):
        poster(lookup=lambda host, port: ["10.0.0.1"]).post(inside, b"{}", {})  # noqa: ARG005 - the look-up's shape
    assert good.got == []


def test_a_malformed_response_raises_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def talk() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65_536)
                connection.send(b"SSH-2.0-nonsense\r\n\r\n")

        thread = threading.Thread(target=talk)
        thread.start()
        with pytest.raises(NoAnswer):
            poster().post(f"http://127.0.0.1:{listening.getsockname()[1]}/", b"{}", {})
        thread.join()


def test_the_certificate_must_be_the_name_s(tmp_path: Path) -> None:
    need("openssl")
    certificate, key = str(tmp_path / "c.pem"), str(tmp_path / "k.pem")
    request = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    name = ["-subj", "/CN=hook.example", "-addext", "subjectAltName=DNS:hook.example", "-days", "2"]
    subprocess.run([*request, *name, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    trusting = ssl.create_default_context(cafile=certificate)

    def local(host: str, port: int) -> list[str]:
        del host, port
        return ["127.0.0.1"]

    with receiver((certificate, key)) as here:
        port = here.url.split(":")[2]
        named, other = f"https://hook.example:{port}", f"https://other.example:{port}"
        assert poster(tls=trusting, lookup=local).post(named, b"{}", {}).status == 200
        with pytest.raises(NoAnswer, match=r"(?i)certificate"):
            poster(tls=trusting, lookup=local).post(other, b"{}", {})
        with pytest.raises(NoAnswer, match=r"(?i)certificate"):
            poster(lookup=local).post(named, b"{}", {})
        assert len(here.got) == 1


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


PUBLIC = "93.184.216.34"


def lookup(*addresses: str) -> "Lookup":
    return Lookup(addresses)


class Lookup:
    def __init__(self, addresses: Sequence[str]) -> None:
        self.addresses = addresses
        self.asked = 0

    def __call__(self, host: str, port: int) -> Sequence[str]:
        del host, port
        self.asked += 1
        return self.addresses


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "::1",
        "fe80::1%eth0",
        "fd00::1",
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "::a00:1",
        "192.0.0.192",
        "192.0.0.9",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "64:ff9b:1::7f00:1",
        "::ffff:0:127.0.0.1",
        "2606:4700::5efe:7f00:1",
        "fec0::1",
        "3fff::1",
        "5f00::1",
    ],
)
def test_internal_addresses_are_refused_however_they_are_written(address: str) -> None:
    with pytest.raises(Refused, match="internal"):
        permitted("hook.example", 443, [], lookup=lookup(address))


@pytest.mark.parametrize("address", [PUBLIC, "2606:4700::1111", "64:ff9b::5db8:d822", "2002:5db8:d822::1"])
def test_public_addresses_may_be_connected_to(address: str) -> None:
    assert permitted("hook.example", 443, [], lookup=lookup(address)) == address


def test_a_listed_network_may_be_connected_to() -> None:
    allow = [ip_network("10.20.0.0/16")]
    assert permitted("hook", 443, allow, lookup=lookup("10.20.1.1")) == "10.20.1.1"
    assert permitted("hook", 443, allow, lookup=lookup("::ffff:10.20.1.1")) == "::ffff:10.20.1.1"
    with pytest.raises(Refused):
        permitted("hook", 443, allow, lookup=lookup("10.21.1.1"))


def test_a_name_is_asked_for_once_and_the_first_good_address_taken() -> None:
    asked = lookup("127.0.0.1", PUBLIC)
    assert permitted("hook.example", 443, [], lookup=asked) == PUBLIC
    assert asked.asked == 1


def test_without_tls_only_listed_networks() -> None:
    with pytest.raises(Refused, match="TLS"):
        permitted("hook.example", 80, [], plain=True, lookup=lookup(PUBLIC))
