import json
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from service.contracts.event import JobCompletion
from service.errors import ConfigurationError, TooLarge, Unavailable
from service.messaging.record import Message
from service.watch import event_sender as send
from service.watch.event_sender import ApiSender, TopicSender
from tests.service.http_server import listening


class Service(ThreadingHTTPServer):
    """Answers with `status`, and keeps what came."""

    daemon_threads = True
    status = 200
    answer: Mapping[str, Any] = {"detail": "the reason"}

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.came: list[tuple[str, str | None, bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.came.append((self.path, self.headers.get("authorization"), body))
        answer = json.dumps(self.server.answer).encode()
        self.send_response(self.server.status)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    with listening(made):
        yield made


def event(number: int = 1, **more: Any) -> JobCompletion:
    values = {"cluster": "lab", "job_id": f"ml/Job/j{number}", "status": "failed", "ended_at": "2026-11-21T11:00:00Z"}
    return JobCompletion.model_validate({**values, **more})


def test_events_go_to_the_api_as_lines_with_the_token_of_the_moment(service: Service) -> None:
    tokens = iter(["first", "second"])
    sender = ApiSender(service.url, lambda: next(tokens))
    sender.send([event(1), event(2)])
    sender.send([event(3)])
    sender.close()
    (path, token, body), (_, later, _) = service.came
    assert (path, token, later) == ("/api/v1/events", "Bearer first", "Bearer second")
    lines = [json.loads(line) for line in body.split(b"\n")]
    assert [line["job_id"] for line in lines] == ["ml/Job/j1", "ml/Job/j2"]
    assert lines[0]["schema"] == "job-completion/1"
    assert "queue" not in lines[0]


def test_many_go_in_several_bodies(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send, "BODY_BYTES", 1_000)
    sender = ApiSender(service.url, None)
    sender.send([event(number) for number in range(20)])
    sender.close()
    assert len(service.came) > 1
    assert sum(body.count(b"\n") + 1 for _, _, body in service.came) == 20
    assert all(token is None for _, token, _ in service.came)


@pytest.mark.parametrize(
    ("status", "error"),
    [(500, Unavailable), (503, Unavailable), (429, Unavailable), (413, TooLarge), (401, ConfigurationError)],
)
def test_each_answer_is_what_it_is(service: Service, status: int, error: type[Exception]) -> None:
    service.status = status
    sender = ApiSender(service.url, None)
    with pytest.raises(error, match="the reason"):
        sender.send([event()])
    sender.close()


def test_ends_that_the_service_rejects_are_reported(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    service.answer = {"accepted": 1, "rejected": [{"line": 2, "field": "status", "expected": "a status"}]}
    sender = ApiSender(service.url, None)
    sender.send([event(1), event(2)])
    sender.close()
    assert "rejected 1 of 2 ends" in caplog.text
    assert "a status" in caplog.text


def test_no_answer_is_unavailable() -> None:
    sender = ApiSender("http://127.0.0.1:1", None)
    with pytest.raises(Unavailable):
        sender.send([event()])
    sender.close()


def test_a_topic_gets_them_keyed_by_their_job() -> None:
    class Producer:
        def __init__(self) -> None:
            self.sent: list[tuple[str, Sequence[Message]]] = []

        def send(self, topic: str, messages: Sequence[Message]) -> None:
            self.sent.append((topic, messages))

        def close(self) -> None:
            self.sent.append(("closed", ()))

    producer = Producer()
    sender = TopicSender(producer, "jobs")
    sender.send([event()])
    sender.close()
    [(topic, [message]), _] = producer.sent
    assert (topic, message.key) == ("jobs", b"lab/ml/Job/j1")
    assert json.loads(message.value or b"")["status"] == "failed"
