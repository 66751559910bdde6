"""People are told by a real mail server and a chat's own shape; what belongs together comes together."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import orjson
import pytest

from service.db.session import Store
from service.deliveries.channels import chat_process
from service.deliveries.channels.chat import ChatChannel
from service.deliveries.config import defaults
from service.deliveries.drain import Target
from service.errors import ConfigurationError
from tests.service.deliveries.receivers import Inbox, mail_server, receiver
from tests.service.deliveries.sample_messages import LOOPBACK, drain, due, payload, put
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import job
from tests.service.sample_rows import put as put_failures

pytest.importorskip("apprise")
pytest.importorskip("aiosmtpd.controller")
SCHEMAS = defaults()["chat"]["schemas"]


@pytest.fixture
def inbox() -> Iterator[tuple[Inbox, str]]:
    with mail_server() as (box, url):
        yield box, url


def channel(url: str, **changes: Any) -> ChatChannel:
    given = {"timeout_s": 10.0, "public_url": "https://faultline.example", **changes}
    return ChatChannel(url, SCHEMAS, [LOOPBACK], **given)


def text_of(mail: Any) -> str:
    return str(mail.get_body(("plain", "html")).get_content())


def test_a_mail_to_the_owner_says_what_it_is_whether_it_is_retried_and_where_to_read_on(
    inbox: tuple[Inbox, str],
) -> None:
    box, url = inbox
    assert channel(url).send([due(7, payload=payload(7) | {"user": "ana"})]).kind == "sent"
    assert box.to == [["ana@org.example"]]
    output = text_of(box.mails[0])
    assert "FileNotFoundError" in output
    assert "terminal" in output or "will retry" in output or "held" in output
    assert "https://faultline.example/failures/7" in output


def test_without_an_owner_there_is_no_recipient(inbox: tuple[Inbox, str]) -> None:
    assert channel(inbox[1]).send([due(1)]).kind == "refused"


def test_a_chat_gets_its_own_shape() -> None:
    with receiver() as here:
        port = here.url.rsplit(":", 1)[1].partition("/")[0]
        assert channel(f"mmost://127.0.0.1:{port}/abcdefghijklmnopqrstuvwxyz").send([due(3)]).kind == "sent"
    result = orjson.loads(here.got[0].body)
    assert "orion/3" in result["text"]


def test_a_receiver_that_fails_redirects_or_is_closed_is_tried_again() -> None:
    with receiver() as here:
        port = here.url.rsplit(":", 1)[1].partition("/")[0]
        talk = channel(f"mmost://127.0.0.1:{port}/abcdefghijklmnopqrstuvwxyz")
        for status, headers in ((500, {}), (302, {"location": "http://127.0.0.1:9/"})):
            here.status, here.headers = status, headers
            assert talk.send([due(3)]).kind == "retry"
    assert talk.send([due(3)]).kind == "retry"


@pytest.mark.parametrize("schema", ["mmost", "mailto"])
def test_a_name_that_changes_its_address_after_the_check_reaches_no_internal_server(
    schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library that sends looks the name up once more."""
    monkeypatch.setattr("service.deliveries.channels.chat.permitted", lambda *_, **__: "192.0.2.1")
    address = {
        "mmost": "mmost://localhost:{port}/abcdefghijklmnopqrstuvwxyz",
        "mailto": "mailto://localhost:{port}?from=f@org.example&to=ana@org.example",
    }[schema]
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        server.settimeout(0.2)
        url = address.format(port=server.getsockname()[1])
        chat = ChatChannel(url, SCHEMAS, [], timeout_s=5)
        outcome = chat.send([due(3)])
        chat.close()
        with pytest.raises(TimeoutError):
            server.accept()
    assert outcome.kind == "retry"
    assert "internal" in outcome.detail


def test_an_address_outside_the_listed_networks_is_not_reached() -> None:
    internal = ChatChannel("mmost://10.1.2.3/abcdefghijklmnopqrstuvwxyz", SCHEMAS, [LOOPBACK], timeout_s=1)
    outcome = internal.send([due(1)])
    assert outcome.kind == "retry"
    assert "internal" in outcome.detail


ENDLESS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@contextmanager
def hostile(answer: Callable[[socket.socket], object]) -> Iterator[str]:
    """The address of a chat whose server answers each request with what `answer` sends."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                made, _ = listening.accept()
                with made, suppress(OSError):
                    made.recv(65_536)
                    answer(made)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"mmost://127.0.0.1:{listening.getsockname()[1]}/abcdefghijklmnopqrstuvwxyz"
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
    thread.join(10)


@pytest.mark.enable_socket
def test_an_answer_without_an_end_takes_no_memory_of_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """It filled 1.5 GB in eight seconds, and never ended."""
    monkeypatch.setattr(chat_process, "MEMORY_BYTES", 96 << 20)
    piece = b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"

    def endless(made: socket.socket) -> None:
        made.sendall(ENDLESS)
        while True:
            made.sendall(piece)

    with hostile(endless) as url, closing(channel(url)) as talk:
        outcome = talk.send([due(3)])
    assert outcome.kind == "retry"
    assert "too large" in outcome.detail or "ended" in outcome.detail


@pytest.mark.enable_socket
def test_an_answer_that_never_completes_ends_with_the_time_of_the_message() -> None:
    """One that came byte by byte held its endpoint up until the next start."""
    stopped = threading.Event()

    def slowly(made: socket.socket) -> None:
        made.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        while not stopped.wait(0.01):
            made.sendall(b"x")

    with hostile(slowly) as url, closing(channel(url, timeout_s=0.1)) as talk:
        outcome = talk.send([due(3)])
        stopped.set()
    assert (outcome.kind, outcome.detail) == ("retry", "the receiver had no complete answer within 0.3 s")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "json://127.0.0.1/x", "nothing", "mailto://"])
def test_only_listed_schemes_and_whole_addresses(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        channel(url)
    assert "/etc/passwd" not in str(caught.value)


def test_failures_of_one_owner_and_kind_come_together_once_in_a_while(
    store: Store, clock: FrozenClock, inbox: tuple[Inbox, str]
) -> None:
    box, url = inbox
    stored = put_failures(store, [job(str(number), user="ana") for number in range(1, 5)])
    first, *others = [outcome.failure_id or 0 for outcome in stored]
    owners = Target("owners", (), channel(url), url, digest_s=3600, to_owner=True)
    result = drain(store, clock, [owners])
    put(store, first)
    result.route()
    assert result.deliver("owners") == 1
    put(store, *others)
    result.route()
    result.deliver("owners")
    assert len(box.mails) == 1
    clock.sleep(3601)
    result.deliver("owners")
    with store.reading() as reading:
        waiting = reading.deliveries.page(state="waiting", limit=10).items
    assert waiting == ()
    assert len(box.mails) == 2
    assert "3 failures of one kind" in str(box.mails[1]["subject"])
    assert result.due() == set()


def test_without_a_digest_each_owner_gets_mail_at_once(
    store: Store, clock: FrozenClock, inbox: tuple[Inbox, str]
) -> None:
    box, url = inbox
    failures = [
        outcome.failure_id or 0 for outcome in put_failures(store, [job("1", user="ana"), job("2", user="ana")])
    ]
    owners = Target("owners", (), channel(url), url, digest_s=0, to_owner=True)
    result = drain(store, clock, [owners])
    for number, failure in enumerate(failures, 1):
        put(store, failure)
        result.route()
        assert result.deliver("owners") == 1
        assert len(box.mails) == number


def test_a_channel_gets_the_failures_of_all_owners_in_one_digest(
    store: Store, clock: FrozenClock, inbox: tuple[Inbox, str]
) -> None:
    """What fails the jobs of hundreds of people is not hundreds of messages for their operators."""
    box, url = inbox
    failures = put_failures(store, [job(str(number), user=f"user{number}") for number in range(1, 5)])
    here = Target("ops", (), channel(url), url, digest_s=3600)
    result = drain(store, clock, [here])
    put(store, *(one.failure_id or 0 for one in failures))
    result.route()
    result.deliver("ops")
    assert [str(one["subject"]).partition(":")[0] for one in box.mails] == ["4 failures of one kind"]
