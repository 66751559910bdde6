import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka.protocol.metadata import MetadataRequest

from service.messaging.kafka.connect import NetClient
from tests.labs.kafka import Broker

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("kafka")]  # one broker for all files of the group


def open_sockets() -> int:
    links = list(Path("/proc/self/fd").iterdir())
    return sum(one.is_symlink() and str(one.readlink()).startswith("socket:") for one in links)


@contextmanager
def nothing_collected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("connected", [True, False], ids=["an unsent request", "an unfinished connect"])
def test_closing_a_client_closes_its_sockets(kafka_broker: Broker, *, connected: bool) -> None:
    with nothing_collected():
        before = open_sockets()
        client = NetClient(bootstrap_servers=kafka_broker.address)
        if connected:
            client.await_ready("bootstrap-0")
            client.send("bootstrap-0", MetadataRequest())
        else:
            client.maybe_connect("bootstrap-0")
            client.poll(timeout_ms=0)
        assert open_sockets() > before
        client.close()
        assert open_sockets() == before
