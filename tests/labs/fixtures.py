"""The labs as fixtures, each started once in a test run and only on demand."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.labs.kafka import Broker
    from tests.labs.kubernetes import Kubernetes
    from tests.labs.postgres import Postgres


@pytest.fixture(scope="session")
def kafka_broker() -> "Iterator[Broker]":
    """A real broker shared by all tests: use your own topics and groups, and leave it running."""
    from tests.labs.kafka import broker  # noqa: PLC0415 - the client is imported once warnings are configured

    with broker(encrypted=True) as made:
        yield made


@pytest.fixture
def own_kafka_broker() -> "Iterator[Broker]":
    """A real broker for one test that stops or restarts it."""
    from tests.labs.kafka import broker  # noqa: PLC0415 - as above

    with broker() as made:
        yield made


@pytest.fixture(scope="session")
def postgres_server() -> "Iterator[Postgres]":
    """A real PostgreSQL server shared by all tests: create your own database, and leave it running."""
    from tests.labs.postgres import server  # noqa: PLC0415 - as above

    with server() as made:
        yield made


@pytest.fixture(scope="module")
def kubernetes_cluster() -> "Iterator[Kubernetes]":
    """A real Kubernetes control plane shared by the tests of a file: use your own names, and keep all nodes."""
    from tests.labs.kubernetes import cluster  # noqa: PLC0415 - as above

    with cluster() as made:
        yield made
