"""The HTTP client for slurmrestd: over its Unix socket or TCP, answers of bounded size, no redirects, no proxy.

The token is read for each request, so that it can be changed without a restart; it appears in no message.
"""

import http.client
import json
import os
import socket
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from service.clock import Clock
from service.hooks.request import SchedulerUnavailable
from service.setting_texts import small_text

ANSWER_BYTES = 256 << 20  # enough for all jobs of a large cluster
_PART = 1 << 16
UNIX = "unix:"


class SlurmRestTransport:
    """A client for one slurmrestd.

    Args:
        url: `unix:/path`, or `http://HOST:PORT` or `https://...`; a path before /slurm is kept.
        clock: measures the time limit of an answer.
        token: returns the value of X-SLURM-USER-TOKEN; None: the header is not sent.
        tls: trusted certificates, for https.
        timeout_s: time limit of one request in seconds.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        token: Callable[[], str] | None = None,
        tls: ssl.SSLContext | None = None,
        timeout_s: float = 60.0,
    ) -> None:
        parts = urlsplit(url)
        self.shown = f"slurmrestd at {url if url.startswith(UNIX) else parts.netloc}"
        self._url = url
        self._prefix = "" if url.startswith(UNIX) else parts.path.rstrip("/")
        self._clock = clock
        self._token = token
        self._tls = tls
        self._timeout_s = timeout_s

    def ask(
        self, method: str, path: str, content: Mapping[str, Any] | None = None
    ) -> tuple[int, Mapping[str, Any] | None]:
        """Return the status and the decoded JSON object; None: the body is something else.

        Raises:
            SchedulerUnavailable: there is no answer within the time limit.
        """
        headers = {"content-type": "application/json", "accept": "application/json", "user-agent": "faultline-hook"}
        if self._token is not None:
            headers["x-slurm-user-token"] = self._token()
        deadline = self._clock.monotonic() + self._timeout_s
        connection = self._connection()
        body = bytearray()
        try:
            given = None if content is None else json.dumps(content).encode()
            connection.request(method, self._prefix + path, given, headers)
            response = connection.getresponse()
            while part := response.read1(_PART):
                body += part
                if len(body) > ANSWER_BYTES or self._clock.monotonic() > deadline:
                    raise SchedulerUnavailable(f"{self.shown}: the answer is too large or too slow")
        except TimeoutError:
            raise SchedulerUnavailable(f"{self.shown}: no answer within {self._timeout_s:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            raise SchedulerUnavailable(f"{self.shown}: {type(error).__name__} {error}"[:300]) from None
        finally:
            connection.close()
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        return response.status, answer if isinstance(answer, dict) else None

    def _connection(self) -> http.client.HTTPConnection:
        if self._url.startswith(UNIX):
            return _OverSocket(self._url.removeprefix(UNIX), self._timeout_s)
        parts = urlsplit(self._url)
        host = parts.hostname or ""
        if parts.scheme == "https":
            return http.client.HTTPSConnection(host, parts.port, timeout=self._timeout_s, context=self._tls)
        return http.client.HTTPConnection(host, parts.port, timeout=self._timeout_s)


def token_of(reference: str) -> Callable[[], str]:
    """Return a function that reads the token at each call, from `file:/path` or `env:NAME`.

    Raises:
        SchedulerUnavailable: raised by the returned function if there is no token.
    """

    def read() -> str:
        kind, _, name = reference.partition(":")
        try:
            token = (os.environ[name] if kind == "env" else small_text(Path(name), "ascii")).strip()
        except (KeyError, OSError, ValueError):
            raise SchedulerUnavailable(f"slurmrestd's token can't be read from {reference}") from None
        token = token.removeprefix("SLURM_JWT=")  # the format of `scontrol token`
        if not token or not token.isascii() or not token.isprintable():
            raise SchedulerUnavailable(f"{reference} holds no token")
        return token

    return read


class _OverSocket(http.client.HTTPConnection):
    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Connect to the Unix socket."""
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            opened.settimeout(self.timeout)
            opened.connect(self._path)
        except OSError:
            opened.close()
            raise
        self.sock = opened
