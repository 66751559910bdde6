"""The client's edge: what a server may answer that no healthy one does. A healthy one is in tests/flows."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from service.errors import ConfigurationError
from service.kubernetes import api as api_module
from service.kubernetes.api import KubernetesApi, connect
from service.kubernetes.errors import AlreadyExists, ClusterUnavailable, ObjectNotFound, RequestRefused, VersionExpired
from service.kubernetes.paths import collection, named
from tests.service.http_server import listening

JOBS = "/apis/batch/v1/namespaces/ml/jobs"


class Handler(BaseHTTPRequestHandler):
    """Answers each request with `reply(self)`."""

    reply: Callable[[Any], None]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        type(self).reply(self)

    def do_POST(self) -> None:
        self.body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        type(self).reply(self)

    def say(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content_length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def handler() -> type[Handler]:
    return type("OwnHandler", (Handler,), {})


@pytest.fixture
def api(handler: type[Handler], tmp_path: Path) -> Iterator[KubernetesApi]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    with listening(server) as address:
        made = connect(kubeconfig(tmp_path, address))
        yield made
        made.close()


def kubeconfig(folder: Path, server: str) -> Path:
    path = folder / "kubeconfig"
    config = {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "secret-token"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **config}))
    return path


def status(code: int, reason: str) -> bytes:
    return json.dumps({"kind": "Status", "code": code, "reason": reason, "message": f"it is {reason}"}).encode()


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (404, "NotFound", ObjectNotFound),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", RequestRefused),
        (403, "Forbidden", RequestRefused),
        (422, "Invalid", RequestRefused),
        (410, "Expired", VersionExpired),
        (429, "TooManyRequests", ClusterUnavailable),
        (500, "InternalError", ClusterUnavailable),
        (503, "ServiceUnavailable", ClusterUnavailable),
    ],
)
def test_each_status_is_an_error_of_its_own(
    api: KubernetesApi, handler: type[Handler], code: int, reason: str, error: type[Exception]
) -> None:
    handler.reply = lambda self: self.say(code, status(code, reason))
    with pytest.raises(error, match=f"it is {reason}") as caught:
        api.create(JOBS, {"kind": "Job"})
    assert "secret-token" not in str(caught.value)
    assert type(caught.value) is error


def test_retry_after_is_read(api: KubernetesApi, handler: type[Handler]) -> None:
    handler.reply = lambda self: self.say(429, status(429, "TooManyRequests"), retry_after="7")
    with pytest.raises(ClusterUnavailable) as caught:
        api.get(JOBS)
    assert caught.value.retry_after_s == 7
    handler.reply = lambda self: self.say(429, status(429, "TooManyRequests"), retry_after="9" * 400)
    with pytest.raises(ClusterUnavailable) as caught:
        api.get("/x")
    assert caught.value.retry_after_s == 3600  # a watch that waits longer seems to be dead


def test_the_token_goes_along_and_the_query_as_it_is_given(api: KubernetesApi, handler: type[Handler]) -> None:
    def reply(self: Handler) -> None:
        self.say(200, json.dumps({"path": self.path, "token": self.headers["authorization"]}).encode())

    handler.reply = reply
    found = api.get(JOBS, {"labelSelector": "a in (b,c)", "limit": 5, "continue": None})
    assert found == {"path": f"{JOBS}?labelSelector=a%20in%20%28b%2Cc%29&limit=5", "token": "Bearer secret-token"}


@pytest.mark.parametrize("body", [b"<html>proxy</html>", b"", b"[]", b"{"])
def test_an_answer_that_is_none_is_the_cluster_away(api: KubernetesApi, handler: type[Handler], body: bytes) -> None:
    handler.reply = lambda self: self.say(200, body)
    with pytest.raises(ClusterUnavailable):
        api.get(JOBS)
    handler.reply = lambda self: self.say(502, body)
    with pytest.raises(ClusterUnavailable):
        api.get(JOBS)


def test_an_endless_answer_is_cut(api: KubernetesApi, handler: type[Handler], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "ANSWER_BYTES", 100_000)
    monkeypatch.setattr(api_module, "OBJECT_BYTES", 100_000)
    handler.reply = lambda self: self.say(200, b'{"x": "' + b"x" * 500_000)
    with pytest.raises(ClusterUnavailable, match="more than"):
        api.get(JOBS)
    with pytest.raises(ClusterUnavailable, match="more than"):
        list(api.watch(JOBS, {}, silence_s=5))


def test_a_watch_gives_changes_and_raises_its_errors(api: KubernetesApi, handler: type[Handler]) -> None:
    changes = [
        {"type": "ADDED", "object": {"a": 1}},
        {"type": "ERROR", "object": {"code": 410, "reason": "Expired"}},
    ]
    lines = b"".join(json.dumps(one).encode() + b"\n" for one in changes)
    handler.reply = lambda self: self.say(200, lines)
    watched = api.watch(JOBS, {"resourceVersion": "1"}, silence_s=5)
    assert next(watched) == changes[0]
    with pytest.raises(VersionExpired):
        next(watched)


def test_a_watch_that_falls_silent_ends_and_one_that_breaks_says_so(api: KubernetesApi, handler: type[Handler]) -> None:
    over = threading.Event()

    def silent(self: Handler) -> None:
        self.say(200, b'{"type": "ADDED", "object": {}}\n', content_length="1000")
        self.wfile.flush()
        over.wait(60)

    handler.reply = silent
    assert len(list(api.watch(JOBS, {}, silence_s=0.3))) == 1
    over.set()

    def broken(self: Handler) -> None:
        self.say(200, b'{"type": "ADDED", "object": {}}\n', content_length="1000")
        self.close_connection = True

    handler.reply = broken
    with pytest.raises(ClusterUnavailable):
        list(api.watch(JOBS, {}, silence_s=5))


def test_of_a_text_the_end_is_kept_and_no_more_read_than_allowed(api: KubernetesApi, handler: type[Handler]) -> None:
    handler.reply = lambda self: self.say(200, b"0123456789" * 1_000 + b"the end")
    tail = {"keep": 17, "within_s": 5.0}
    assert api.text_tail("/log", {}, read_at_most=1 << 20, **tail) == "0123456789the end"  # type: ignore[arg-type]
    handler.reply = lambda self: self.say(200, b"a" * 200_000 + b"never read")
    assert "never" not in api.text_tail("/log", {}, read_at_most=100_000, **tail)  # type: ignore[arg-type]


def test_a_server_that_is_not_there_is_away(tmp_path: Path) -> None:
    made = connect(kubeconfig(tmp_path, "http://127.0.0.1:1"))
    with pytest.raises(ClusterUnavailable):
        made.get(JOBS)
    made.close()


@pytest.mark.parametrize("content", [None, "", "kind: [", "a: 1"])
def test_a_file_that_is_not_a_kubeconfig_is_reported(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigurationError, match="no usable Kubernetes configuration"):
        connect(path)


def test_paths_hold_what_names_hold() -> None:
    assert collection("v1", "pods", None) == "/api/v1/pods"
    assert named("batch/v1", "jobs", "ml", "a/b?c") == f"{JOBS}/a%2Fb%3Fc"
