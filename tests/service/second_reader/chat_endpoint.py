"""An OpenAI-compatible endpoint on loopback that checks what it is asked and answers as a test says."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.service.http_server import listening

Messages = list[dict[str, str]]
SETTLED = {"side": "system", "cause": "SYS.5", "confidence": 0.8, "lines": [1], "reason": "A service was down."}


@dataclass
class ChatEndpoint:
    """The answer of the model is `content` of the messages; `status` other than 200 is an error."""

    url: str = ""
    content: Callable[[Messages], str] = lambda _: json.dumps(SETTLED)
    status: int = 200
    body: bytes | None = None
    before_answer: Callable[[], object] | None = None
    got: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def answer(self, request: dict[str, Any]) -> bytes:
        """A chat completion with its usage."""
        if self.body is not None:
            return self.body
        message = {"role": "assistant", "content": self.content(request["messages"])}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        usage = {"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940}
        return json.dumps({"object": "chat.completion", "choices": [choice], "usage": usage}).encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is what some tests are about."""


@contextmanager
def chat_endpoint() -> Iterator[ChatEndpoint]:
    """An endpoint on a free port."""
    here = ChatEndpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            here.got.append({"path": self.path, **request})
            here.headers.append({name.lower(): value for name, value in self.headers.items()})
            if here.before_answer is not None:
                here.before_answer()
            answer = here.answer(request)
            with suppress(OSError):
                self.send_response(here.status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            del format, args

    server = _Server(("127.0.0.1", 0), Handler)
    with listening(server) as address:
        here.url = f"{address}/v1"
        yield here
