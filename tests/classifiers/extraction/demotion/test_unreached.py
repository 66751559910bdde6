"""A client that cannot reach a server of its own job fails of what ended the server."""

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

CLIENT = (
    "step 40 loss 1.2\nTraceback (most recent call last):\n"
    '  File "/srv/rl/loop.py", line 9, in ask\n'
    "requests.exceptions.ConnectionError: HTTPConnectionPool(host='{host}', port=81): Max retries exceeded: /v1\n"
)
SERVER = (
    "INFO served 80 requests\nTraceback (most recent call last):\n"
    '  File "/srv/rl/judge.py", line 31, in grade\nZeroDivisionError: division by zero\n'
)


def role_of_client(client_host: str, server: str, server_node: str = "c2") -> str:
    raw = RawCase(
        job=JobFacts(status="failed", nodes=("c1", "c2", "c3")),
        streams=(
            LogStream(CLIENT.format(host=client_host), rank=0, node="c1"),
            LogStream(server, node=server_node, stream="stdout"),
        ),
    )
    return next(item.role for item in EXTRACTOR.extract(raw).items if "Max retries" in item.text)


def test_the_error_of_the_server_comes_before_that_of_its_client() -> None:
    assert role_of_client("c2.cluster.local", SERVER) == "cascade"
    assert role_of_client("c3.cluster.local", SERVER) == "initiating"  # a server of somebody else


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_client_that_names_its_own_node_means_a_server_there(host: str) -> None:
    assert role_of_client(host, SERVER, "c1") == "cascade"


def test_an_error_after_that_of_the_client_does_not_explain_it() -> None:
    late = SERVER.replace("ZeroDivisionError", "2026-12-01 09:00:00 ZeroDivisionError")
    at_eight = CLIENT.replace("requests.exc", "2026-12-01 08:00:00 requests.exc")
    raw = RawCase(
        job=JobFacts(status="failed", nodes=("c1", "c2")),
        streams=(LogStream(at_eight.format(host="c2"), rank=0, node="c1"), LogStream(late, node="c2")),
    )
    assert next(item.role for item in EXTRACTOR.extract(raw).items if "Max retries" in item.text) == "initiating"
