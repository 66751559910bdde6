"""Requests against real receivers, good and bad."""

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.deliveries.channels.http import NoAnswer
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
