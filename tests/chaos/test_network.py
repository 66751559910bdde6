"""Bad links between worker, broker and database: what the proxy does, and that nothing is lost or stored twice."""

import random
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos import network
from tests.chaos.plans import Plan
from tests.chaos.slow_link import Condition, SlowLink, slow_link
from tests.flows.crashes import model_dir
from tests.labs.need import missing, need

BYTES = random.Random(3).randbytes(3_000_000)


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that sends back what it receives."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def answer(connection: socket.socket) -> None:
    with connection:
        while data := connection.recv(65_536):
            connection.sendall(data)


@pytest.fixture
def link(echo: int) -> Iterator[SlowLink]:
    with slow_link(echo) as link:
        yield link


def connected(link: SlowLink) -> socket.socket:
    return socket.create_connection(("127.0.0.1", link.port), timeout=60)


def everything(client: socket.socket) -> bytes:
    return b"".join(iter(lambda: client.recv(65_536), b""))


def ended(client: socket.socket) -> bool:
    """Wait for the other side; whether it ended the connection."""
    try:
        return client.recv(100) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    "condition", [Condition(), Condition(0.001, 0.001, 0.1), Condition(jitter_s=0.01)], ids=["calm", "loss", "jitter"]
)
def test_all_bytes_arrive_in_their_order(link: SlowLink, condition: Condition) -> None:
    link.set(condition)
    with connected(link) as client:

        def send() -> None:
            client.sendall(BYTES)
            client.shutdown(socket.SHUT_WR)

        sending = threading.Thread(target=send)
        sending.start()
        assert everything(client) == BYTES
        sending.join()


def test_nothing_arrives_during_a_stall_and_everything_after_it(link: SlowLink) -> None:
    with connected(link) as client:
        client.sendall(b"before")
        assert client.recv(100) == b"before"
        with link.stalled():
            client.sendall(b"after")
            assert select.select([client], [], [], 0.3)[0] == []
        assert client.recv(100) == b"after"


def test_a_reset_ends_connections_and_new_ones_are_accepted(link: SlowLink) -> None:
    with connected(link) as client:
        client.sendall(b"before")
        assert client.recv(100) == b"before"
        link.reset()
        assert ended(client)
    with connected(link) as client:
        client.sendall(b"again")
        assert client.recv(100) == b"again"


def test_a_connection_ends_if_no_server_is_behind_the_link() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with slow_link(port) as link, connected(link) as client:
        assert ended(client)


def test_the_same_seed_draws_the_same_faults() -> None:
    assert network.drawn(7, 50) == network.drawn(7, 50) != network.drawn(8, 50)
    assert len(set(network.drawn(7, 500))) == 2 * len(network.FAULTS)


@pytest.mark.lab
@pytest.mark.slow
def test_nothing_is_lost_or_stored_twice_over_bad_links(tmp_path: Path) -> None:
    need("setpriv")
    if not (model_dir() / "manifest.json").exists():
        missing("there is no trained model (make install)")
    faults = ["stall of the broker", "reset of the database", "loss of the database", "stall of the database"]
    plan = Plan(600, faults, 31)  # type: ignore[arg-type]
    with network.linked_labs(plan.seed) as (broker, database, links):
        report = network.NetworkRound.between(plan, broker, database, tmp_path, links).run()
    assert (report.stored, report.lost, report.twice, report.wrong) == (600, 0, 0, [])
