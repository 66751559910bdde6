"""A second reader behind an OpenAI-compatible endpoint (`POST /chat/completions`): vLLM, llama.cpp, Ollama."""

import ipaddress
from collections.abc import Mapping
from typing import Any, Final

import orjson

from service.deliveries.channels.http import NoAnswer, Poster
from service.second_reader.opinion import InvalidAnswer, NoReply, Reply, parse
from service.second_reader.question import Question, response_format

_MOST_TOKENS: Final = 500  # of an answer, which has a few codes and one sentence
_ANSWER_BYTES: Final = 262_144
_EVERYWHERE: Final = (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"))
_LOOPBACK: Final = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))
_OK: Final = 200
_SHOWN: Final = 200


class OpenAIEndpoint:
    """Asks one model of an endpoint that the site runs. Follows no redirects, uses no proxy, keeps one deadline.

    Args:
        url: the base address, such as https://llm.example/v1.
        model: the name of the model.
        api_key: the bearer token, None if the endpoint needs none.
        timeout_s: seconds from the name lookup to the end of the answer.
        allow_http: whether an address without TLS may lead to other machines.
    """

    def __init__(
        self, url: str, model: str, api_key: str | None, *, timeout_s: float, allow_http: bool = False
    ) -> None:
        self._url = f"{url.rstrip('/')}/chat/completions"
        self._model = model
        self._headers = {"content-type": "application/json"}
        if api_key is not None:
            self._headers["authorization"] = f"Bearer {api_key}"
        # The site names the endpoint itself, so that internal addresses are allowed; without TLS only this machine.
        allow = _LOOPBACK if url.startswith("http://") and not allow_http else _EVERYWHERE
        self._poster = Poster(allow, timeout_s=timeout_s, answer_bytes=_ANSWER_BYTES)

    def ask(self, question: Question) -> Reply:
        """Ask the model.

        Raises:
            NoReply: no answer in time, an error status, or an answer of another protocol.
        """
        body = {
            "model": self._model,
            "messages": list(question.messages),
            "response_format": response_format(question),
            "temperature": 0,
            "max_tokens": _MOST_TOKENS,
            "stream": False,
        }
        try:
            answer = self._poster.post(self._url, orjson.dumps(body), self._headers)
        except NoAnswer as error:
            raise NoReply(str(error)) from None
        if answer.status != _OK:
            raise NoReply(f"status {answer.status}")
        try:
            completion = orjson.loads(answer.text)
            content = completion["choices"][0]["message"]["content"]
        except (orjson.JSONDecodeError, KeyError, IndexError, TypeError) as error:
            raise NoReply("the answer is not a chat completion") from error
        if not isinstance(content, str):
            raise NoReply("the answer has no text")
        return self._reply(content, completion, question)

    def _reply(self, content: str, completion: Mapping[str, Any], question: Question) -> Reply:
        tokens = completion.get("usage")
        counted = tokens if isinstance(tokens, dict) else {}
        prompt, answered = _count(counted.get("prompt_tokens")), _count(counted.get("completion_tokens"))
        try:
            opinion = parse(content, question)
        except InvalidAnswer as error:
            return Reply(None, self._model, str(error)[:_SHOWN], prompt, answered)
        return Reply(opinion, self._model, None, prompt, answered)


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else 0
