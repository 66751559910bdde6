"""Logs in a bucket of a real S3 server that is killed, refuses access or has no such bucket."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from classifiers.contracts import LogStream
from service.errors import ConfigurationError, Unavailable
from service.log_storage import build as log_storage
from service.log_storage import log_bodies
from service.log_storage.log_bodies import LogBodies
from service.log_storage.options import LogStorageOptions
from service.log_storage.records import NewLogs, ObjectReference
from service.telemetry import Telemetry
from tests.chaos.faults import faketime_library
from tests.labs.need import missing
from tests.labs.object_storage import S3Server, s3_server

STREAMS = (LogStream("Traceback\n" * 50, 0),)
NEW = NewLogs("orion", "7", "orion/7/0", datetime(2026, 11, 20, tzinfo=UTC), STREAMS)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as made:
        made.bucket("logs")
        yield made


@pytest.fixture
def server(running: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    for name, value in running.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(log_bodies, "PAUSE_S", 0.0)
    return running


def storage(url: str = "s3://logs", *, allow_http: bool = True) -> LogBodies:
    return log_storage.build(LogStorageOptions(url, allow_http), Telemetry())


def test_a_killed_server_loses_no_log_and_is_used_again(server: S3Server) -> None:
    logs = storage()
    [first] = logs.put([NEW])
    assert isinstance(first, ObjectReference)
    server.stop()
    try:
        assert logs.put([NEW]) == [STREAMS]
        with pytest.raises(Unavailable, match="does not answer"):
            logs.read(first.reference)
    finally:
        server.start()
    assert logs.put([NEW]) == [first]
    assert logs.read(first.reference) == STREAMS


def test_a_missing_bucket_and_wrong_credentials_are_reported_at_the_start(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage().check()
    with pytest.raises(ConfigurationError, match=r"FAULTLINE_LOG_STORE_URL.*no such bucket.*404"):
        storage("s3://absent").check()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret-key")
    with pytest.raises(ConfigurationError, match=r"FAULTLINE_LOG_STORE_URL.*refuses access.*403") as caught:
        storage().check()
    assert "wrong-secret-key" not in str(caught.value)
    assert server.environment["AWS_ACCESS_KEY_ID"] not in str(caught.value)


def test_a_wrong_clock_does_not_keep_a_worker_from_starting(server: S3Server) -> None:
    library = faketime_library()
    if library is None:
        missing("libfaketime is not installed")
    program = f"from {__name__} import storage; storage().check(); print('started')"
    environment = {**os.environ, **server.environment, "LD_PRELOAD": str(library), "FAKETIME": "+1h"}
    environment["FAKETIME_DONT_FAKE_MONOTONIC"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=False, timeout=60, capture_output=True, text=True
    )
    assert done.stdout == "started\n", done.stderr


def test_an_endpoint_without_tls_has_to_be_allowed(server: S3Server) -> None:
    assert server.port
    assert storage(allow_http=False).put([NEW]) == [STREAMS]


def forked_use() -> None:
    """Create the storage, then use it in a child process only, as a worker with several processes does."""
    logs = storage()
    child = os.fork()
    if child == 0:
        os._exit(0 if isinstance(logs.put([NEW])[0], ObjectReference) else 1)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def test_a_forked_process_can_use_a_storage_that_its_parent_created(server: S3Server) -> None:
    program = f"from {__name__} import forked_use; forked_use()"
    environment = {**os.environ, **server.environment}
    assert subprocess.run([sys.executable, "-c", program], env=environment, check=False, timeout=60).returncode == 0
