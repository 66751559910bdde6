"""A server of log storage that hangs, lies or never stops: no log is lost, and neither worker nor service ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from classifiers.contracts import LogStream
from service.errors import NotFound, Unavailable
from service.log_storage import bucket_process, log_bodies
from service.log_storage import build as log_storage
from service.log_storage.bucket_process import IsolatedBucket
from service.log_storage.log_bodies import LogBodies, Reference
from service.log_storage.options import LogStorageOptions
from service.log_storage.records import NewLogs
from service.telemetry import Telemetry
from tests.labs.need import missing
from tests.service.raw_server import Answer, Server, sends, silent

pytest.importorskip("obstore")

STREAMS = (LogStream("Traceback\n" * 50, 0),)
NEW = NewLogs("orion", "7", "orion/7/0", datetime(2026, 11, 20, tzinfo=UTC), STREAMS)
STORED = Reference(f"2026-11-20/orion/7/{'0' * 16}-{'0' * 32}.json.zst", 100, "0" * 64).to_column()
OBJECT = b'ETag: "a"\r\nLast-Modified: Fri, 20 Nov 2026 00:00:00 GMT\r\n\r\n'
PART = b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-100/101\r\n"
HUGE = b"Content-Length: 1000000000000\r\n"
CHUNK = b"10000\r\n" + b"x" * 65536 + b"\r\n"
LIST = (
    b"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>next</NextContinuationToken>"
    b"<CommonPrefixes><Prefix>2026-01-01/</Prefix></CommonPrefixes></ListBucketResult>"
)
OTHERS = (
    b"<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>payroll/2026.csv</Key><Size>1</Size>"
    b"<LastModified>2026-01-01T00:00:00Z</LastModified></Contents>"
    b"<CommonPrefixes><Prefix>2026-01-01/</Prefix></CommonPrefixes></ListBucketResult>"
)


ANSWERS: dict[str, Answer] = {
    "silence": silent,
    "half an answer": sends(PART + b"Content-Length: 101\r\n" + OBJECT + b"abc"),
    "a false length": sends(PART + HUGE + OBJECT, b"x" * 65536),
    "an endless answer": sends(PART + b"Transfer-Encoding: chunked\r\n" + OBJECT, CHUNK),
    "an endless head": sends(b"HTTP/1.1 200 OK\r\n", b"X-A: " + b"x" * 60000 + b"\r\n"),
    "an error of a false length": sends(b"HTTP/1.1 500 No\r\n" + HUGE + b"\r\n", b"x" * 65536),
    "an endless error": sends(b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n", CHUNK),
    "a missing object of a false length": sends(b"HTTP/1.1 404 No\r\n" + HUGE + b"\r\n", b"x" * 65536),
    "a redirect to a file": sends(b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"),
    "other content": sends(PART + b"Content-Length: 101\r\n" + OBJECT + b"y" * 101),
}
# After these, the server has said that it stored the object; that is all that a client can know.
ACCEPTED = {"half an answer", "a false length", "an endless answer", "other content"}


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Answer], LogBodies]]:
    servers: list[Server] = []
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setattr(log_bodies, "PAUSE_S", 0.0)

    def made(answer: Answer) -> LogBodies:
        servers.append(Server(answer))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{servers[-1].address}")
        return log_storage.build(LogStorageOptions("s3://logs", allow_http=True), Telemetry())

    yield made
    for server in servers:
        server.close()


@pytest.mark.parametrize("kind", ANSWERS)
def test_no_answer_loses_a_log_or_ends_the_program(storage: Callable[[Answer], LogBodies], kind: str) -> None:
    logs = storage(ANSWERS[kind])
    with pytest.raises((Unavailable, NotFound)):
        logs.read(STORED)
    [stored] = logs.put([NEW])
    assert (stored == STREAMS) is (kind not in ACCEPTED)
    if kind == "silence":
        return  # as above, after another 5 s for each
    if kind not in {"a redirect to a file", "other content"}:
        logs.check()  # only reported
    with pytest.raises(Unavailable):
        logs.remove_before(date(2027, 1, 1))


def test_a_list_without_end_is_given_up(
    storage: Callable[[Answer], LogBodies], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_process, "LIST_S", 1.0)
    logs = storage(sends(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(LIST) + LIST))
    logs.check()
    with pytest.raises(Unavailable, match="did not answer within 1 s"):
        logs.remove_before(date(2027, 1, 1))


def test_objects_of_others_that_a_list_names_are_left_alone(storage: Callable[[Answer], LogBodies]) -> None:
    logs = storage(sends(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(OTHERS) + OTHERS))
    with pytest.raises(Unavailable, match="asked for 2026-01-01/, the storage listed others"):
        logs.remove_before(date(2027, 1, 1))


def test_a_client_that_takes_nothing_is_given_up_in_time(
    storage: Callable[[Answer], LogBodies], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped process is alive but takes no data; more data than a pipe holds wait for it."""
    storage(sends(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"))
    bucket = IsolatedBucket(LogStorageOptions("s3://logs", allow_http=True))
    with pytest.raises(NotFound):
        bucket.get("a", 1)
    first = bucket._client
    assert first is not None
    os.kill(first.process.pid, signal.SIGSTOP)
    monkeypatch.setattr(bucket_process, "CALL_S", 1.0)
    with pytest.raises(Unavailable, match="did not answer within 1 s"):
        bucket.put("a", bytes(8 << 20))
    monkeypatch.setattr(bucket_process, "CALL_S", 120.0)
    with pytest.raises(NotFound):  # of a new process
        bucket.get("a", 1)


def test_what_a_redirect_leads_to_is_not_shown_and_no_log_is_sent_there(
    storage: Callable[[Answer], LogBodies],
) -> None:
    internal = Server(sends(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n" + OBJECT + b"secret"))
    for code in (301, 302, 307, 308):
        away = (
            f"HTTP/1.1 {code} Away\r\nLocation: http://{internal.address}/latest/meta-data\r\nContent-Length: 0\r\n\r\n"
        )
        logs = storage(sends(away.encode()))
        assert logs.put([NEW]) == [STREAMS]
        assert internal.requests == 0
        with pytest.raises((Unavailable, NotFound)) as caught:
            logs.read(STORED)
        assert "secret" not in str(caught.value)
        internal.requests = 0
    internal.close()


RESOLVING = """
import os, socket, sys
from tests.attack.test_log_storage_server import NEW, STREAMS, STORED
from service.errors import Unavailable
from service.log_storage import build, log_bodies
from service.log_storage.options import LogStorageOptions
from service.telemetry import Telemetry
silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
silent.bind(("127.0.0.99", 53))
log_bodies.PAUSE_S = 0.0
os.environ["AWS_ENDPOINT_URL"] = "http://logs.example:9"
logs = build.build(LogStorageOptions("s3://logs", allow_http=True), Telemetry())
assert logs.put([NEW]) == [STREAMS]
try:
    logs.read(STORED)
except Unavailable:
    print("given up")
"""


@pytest.mark.usefixtures("storage")
def test_a_name_server_that_does_not_answer_holds_nothing_up(tmp_path: Path) -> None:
    """The system's resolver waits for 40 s here; a private resolv.conf in a mount namespace of its own."""
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.99\noptions timeout:20 attempts:2\n")
    (tmp_path / "nsswitch.conf").write_text("hosts: files dns\n")
    mounts = "".join(f'mount --bind "$1/{name}" /etc/{name} && ' for name in ("resolv.conf", "nsswitch.conf"))
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]
    if subprocess.run([*command, f"{mounts}true", "sh", tmp_path], check=False, capture_output=True).returncode != 0:
        missing("files below /etc can't be mounted here")
    start = time.monotonic()
    done = subprocess.run(
        [*command, f'{mounts}shift && exec "$@"', "sh", tmp_path, sys.executable, "-c", RESOLVING],
        check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout == "given up\n", done.stderr
    assert time.monotonic() - start < 40, "it waited for the resolver"
