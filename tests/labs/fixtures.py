"""The real parts as fixtures, each started once a test run and only when a test asks for it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.labs.kafka import Broker
    from tests.labs.kubernetes import Kubernetes
    from tests.labs.postgres import Postgres


@pytest.fixture(scope="session")
def kafka_broker() -> "Iterator[Broker]":
    """A real broker that all tests share: take topics and groups of your own, and leave it running."""
    from tests.labs.kafka import broker  # noqa: PLC0415 - the client is imported once warnings are configured

    with broker(encrypted=True) as made:
        yield made


@pytest.fixture
def own_kafka_broker() -> "Iterator[Broker]":
    """A real broker for one test that ends it or starts it again."""
    from tests.labs.kafka import broker  # noqa: PLC0415 - as above

    with broker() as made:
        yield made


@pytest.fixture(scope="session")
def postgres_server() -> "Iterator[Postgres]":
    """A real PostgreSQL server that all tests share: make a database of your own, and leave it running."""
    from tests.labs.postgres import server  # noqa: PLC0415 - as above

    with server() as made:
        yield made


@pytest.fixture(scope="module")
def kubernetes_cluster() -> "Iterator[Kubernetes]":
    """A real Kubernetes control plane that the tests of a file share: take names of your own, lose no node."""
    from tests.labs.kubernetes import cluster  # noqa: PLC0415 - as above

    with cluster() as made:
        yield made
