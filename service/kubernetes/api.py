"""Client of one cluster's API in JSON, on top of the official client (authentication, TLS, proxies, token refresh).

Objects stay plain dictionaries, so every field of every version is preserved and a new Job is an exact copy of the
old one. Protocol: https://kubernetes.io/docs/reference/using-api/api-concepts/.
"""

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import urllib3
import yaml
from kubernetes import config
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException

from service.errors import ConfigurationError
from service.kubernetes.errors import (
    AlreadyExists,
    AnswerTooLarge,
    ClusterUnavailable,
    ObjectNotFound,
    RequestRefused,
    VersionExpired,
)
from service.kubernetes.paths import Object

log = logging.getLogger(__name__)

IN_CLUSTER = "KUBERNETES_SERVICE_HOST"
CONNECTIONS = 8
CONNECT_S = 5.0
ANSWER_S = 30.0
RETRY_AFTER_LONGEST_S = 3600.0  # longest accepted value
# etcd stores objects of up to 1.5 MiB; a page of many small objects may be larger than one large object.
OBJECT_BYTES = 8 << 20
ANSWER_BYTES = 64 << 20
_PIECE = 64 << 10
_OK, _BAD, _GONE, _SLOW_DOWN, _SERVER = 200, 300, 410, 429, 500
_NOT_FOUND, _CONFLICT, _TIMEOUT = 404, 409, 408


class KubernetesApi:
    """Requests to one API server. Safe to share between threads; only connections are kept between requests."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Object:
        """Return one object or one page of a list.

        Raises:
            ObjectNotFound, RequestRefused, VersionExpired, ClusterUnavailable: see their docstrings.
        """
        return self._json("GET", path, query)

    def create(self, path: str, body: Mapping[str, Any], query: Mapping[str, Any] | None = None) -> Object:
        """Create an object and return it as stored. There is no retry: after ClusterUnavailable it may exist or not.

        Raises:
            AlreadyExists: an object with this name exists.
            ObjectNotFound, RequestRefused, ClusterUnavailable: see their docstrings.
        """
        return self._json("POST", path, query, body)

    def delete(self, path: str, query: Mapping[str, Any] | None = None) -> Object:
        """Delete an object.

        Raises:
            ObjectNotFound, RequestRefused, ClusterUnavailable: see their docstrings.
        """
        return self._json("DELETE", path, query)

    def watch(self, path: str, query: Mapping[str, Any], *, silence_s: float) -> Iterator[Object]:
        """Yield the changes of a collection until the server ends the watch or sends nothing for `silence_s` seconds.

        An ERROR event is raised as an exception, not yielded.

        Raises:
            VersionExpired, RequestRefused, ClusterUnavailable: see their docstrings.
        """
        response = self._ask("GET", path, {**query, "watch": "true"}, read_s=silence_s)
        with closing(response):
            for line in _lines(response, path):
                change = _decoded(line, path)
                if change.get("type") == "ERROR":
                    raise _refusal(change.get("object") or {}, None, path)
                yield change

    def text_tail(self, path: str, query: Mapping[str, Any], *, keep: int, read_at_most: int, within_s: float) -> str:
        """Return the last `keep` bytes of a text (a container's log) after reading at most `read_at_most` bytes.

        Raises:
            ObjectNotFound, RequestRefused, ClusterUnavailable: see their docstrings.
        """
        deadline = time.monotonic() + within_s
        response = self._ask("GET", path, query, read_s=within_s)
        tail, read = b"", 0
        with closing(response):
            try:
                for piece in response.stream(_PIECE, decode_content=True):
                    tail = (tail + piece)[-keep:]
                    read += len(piece)
                    if read >= read_at_most or time.monotonic() > deadline:
                        break
            except (urllib3.exceptions.HTTPError, OSError) as error:
                raise _away(path, error) from None
        return tail.decode("utf-8", "replace")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _json(
        self, method: str, path: str, query: Mapping[str, Any] | None, body: Mapping[str, Any] | None = None
    ) -> Object:
        response = self._ask(method, path, query or {}, body=body, read_s=ANSWER_S)
        with closing(response):
            return _decoded(_read(response, path, ANSWER_BYTES), path)

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        *,
        read_s: float,
        body: Mapping[str, Any] | None = None,
    ) -> urllib3.HTTPResponse:
        """Send a request and return the successful response; its body is not read yet."""
        headers = {"Accept": "application/json, */*"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            request = self._client.param_serialize(
                method,
                path,
                query_params=[(name, value) for name, value in query.items() if value is not None],
                header_params=headers,
                # Serialized here because the client serializes only some content types.
                body=None if body is None else dict(body),
                auth_settings=["BearerToken"],
            )
            answer = self._client.call_api(*request, _request_timeout=(CONNECT_S, read_s))
        except ApiException as error:  # TLS
            raise ClusterUnavailable(f"Kubernetes: {str(error.reason)[:300]}") from None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise _away(path, error) from None
        response: urllib3.HTTPResponse = answer.response
        if _OK <= response.status < _BAD:
            return response
        with closing(response):
            try:
                problem = orjson.loads(_read(response, path, _PIECE))
            except orjson.JSONDecodeError:
                problem = {}
        raise _refusal(problem, response, path)


def _read(response: urllib3.HTTPResponse, path: str, most: int) -> bytes:
    found = b""
    try:
        for piece in response.stream(_PIECE, decode_content=True):
            found += piece
            if len(found) > most:
                raise AnswerTooLarge(f"Kubernetes: {path}: more than {most} bytes")
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise _away(path, error) from None
    return found


def _lines(response: urllib3.HTTPResponse, path: str) -> Iterator[bytes]:
    """Yield whole lines as they arrive, each of at most OBJECT_BYTES bytes."""
    rest = b""
    while True:
        try:
            piece = response.read1(_PIECE, decode_content=True)
        except urllib3.exceptions.ReadTimeoutError:
            return  # timeout: the caller resumes from its last position
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise _away(path, error) from None
        if not piece:
            return
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line for line in whole if line.strip())
        if len(rest) > OBJECT_BYTES:
            raise ClusterUnavailable(f"Kubernetes: {path}: an object of more than {OBJECT_BYTES} bytes")


def _decoded(text: bytes, path: str) -> Object:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise ClusterUnavailable(f"Kubernetes: {path}: the answer is not JSON") from None
    if not isinstance(found, dict):
        raise ClusterUnavailable(f"Kubernetes: {path}: the answer is not an object")
    return found


def _refusal(
    problem: Any, response: urllib3.HTTPResponse | None, path: str
) -> ClusterUnavailable | VersionExpired | RequestRefused:
    """Return the error for a `Status` object or an HTTP status."""
    status = problem if isinstance(problem, dict) else {}
    code = response.status if response is not None else status.get("code")
    code = code if isinstance(code, int) else _SERVER
    reason = status.get("reason") if isinstance(status.get("reason"), str) else None
    words = str(status.get("message") or (response.reason if response is not None else None) or reason or "no reason")
    detail = f"Kubernetes: {path}: {code} {words[:500]}"
    if code == _GONE or reason in {"Expired", "Gone"}:
        return VersionExpired(detail)
    if code in {_SLOW_DOWN, _TIMEOUT} or code >= _SERVER:
        after = response.headers.get("Retry-After", "") if response is not None else ""
        return ClusterUnavailable(detail, min(float(after), RETRY_AFTER_LONGEST_S) if after.isdecimal() else None)
    if code == _NOT_FOUND:
        return ObjectNotFound(detail, code, reason)
    if code == _CONFLICT and reason == "AlreadyExists":
        return AlreadyExists(detail, code, reason)
    return RequestRefused(detail, code, reason)


def _away(path: str, error: Exception) -> ClusterUnavailable:
    return ClusterUnavailable(f"Kubernetes: {path}: {type(error).__name__}: {error}"[:400])


def connect(kubeconfig: Path | None = None, context: str | None = None) -> KubernetesApi:
    """Connect to the cluster of `kubeconfig`, else the cluster this runs in, else that of the default kubeconfig.

    Raises:
        ConfigurationError: there is no configuration, or it is not readable.
    """
    settings = Configuration()
    # The caller decides on retries and the pauses between them.
    settings.retries = False
    settings.connection_pool_maxsize = CONNECTIONS
    try:
        if kubeconfig is None and os.environ.get(IN_CLUSTER):
            config.load_incluster_config(client_configuration=settings)
        else:
            config.load_kube_config(
                None if kubeconfig is None else str(kubeconfig), context, client_configuration=settings
            )
    except (ConfigException, OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigurationError(f"no usable Kubernetes configuration: {' '.join(str(error).split())[:300]}") from None
    if not settings.verify_ssl:
        log.warning("the kubeconfig disables the verification of the cluster's certificate: %s", settings.host)
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # the service warns once, not per request
    client = ApiClient(settings)
    client.user_agent = "faultline"
    return KubernetesApi(client)
