"""The hook's client of the resubmission API: lease requests, acknowledge them, or report a failure."""

import json
import logging
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol
from urllib.parse import urlencode

from service.api_client import ApiClient, ApiResponse, ApiUnreachable
from service.backoff import http_date, retry_after_s
from service.clock import Clock
from service.hooks.lease_parser import InvalidRequest, expiry_of, read_request
from service.hooks.request import Request, Settled

log = logging.getLogger(__name__)

ANSWER_BYTES = 4 << 20
RETRY_AFTER_LONGEST_S = 3600.0  # longest accepted value
RETRY_LONGEST_S = 86_400.0  # longest sent
LONGEST = 4_000  # characters of a reported text
GONE = (404, 409, 410)  # not known, withdrawn or leased again: this lease is no longer valid
SLOW_DOWN = (408, 425, 429)
SERVER = 500


class ServiceUnavailable(Exception):
    """The service did not answer, or asked to retry later. `retry_after_s`: when, if given."""

    def __init__(self, text: str, retry_after_s: float | None = None) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


class ServiceRefused(Exception):
    """The service refused the request (wrong token, wrong request): retrying does not help."""


class LeaseLost(Exception):
    """The request was withdrawn, settled, or leased to another hook."""


class LeaseService(Protocol):
    """The service interface used by hooks."""

    def lease(self, most: int, seconds: int) -> Sequence[Request]:
        """Lease requests of this hook's cluster for some seconds.

        Raises:
            ServiceUnavailable, ServiceRefused: see the exceptions.
        """
        ...

    def waiting(self, most: int) -> Sequence[Request]:
        """List the requests that are due, without leasing them.

        Raises:
            ServiceUnavailable, ServiceRefused: see the exceptions.
        """
        ...

    def ack(self, request_id: str, lease_token: str, settled: Settled) -> None:
        """Report the outcome of a request; may be repeated.

        Raises:
            LeaseLost, ServiceUnavailable, ServiceRefused: see the exceptions.
        """
        ...

    def fail(self, request_id: str, lease_token: str, error: str, retry_after_s: float | None) -> None:
        """Report that a request failed; without `retry_after_s` the failure is permanent.

        Raises:
            LeaseLost, ServiceUnavailable, ServiceRefused: see the exceptions.
        """
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. `at`: the service's time, if given."""

    status: int
    body: Any
    at: datetime | None
    retry_after_s: float | None


class LeaseClient:
    """The service by HTTP.

    Args:
        url: address of the service, such as https://faultline.example/ (a path before /api is kept).
        token: returns the API token; None: no token is sent.
        hook: name of this hook, shown to people.
        cluster: the cluster of the requests.
        clock: for lease deadlines.
        tls: trusted certificates and client certificate.
        timeout_s: limit in seconds for each step of a request, and for the whole of it.
        margin_s: time before the end of a lease in which no action starts.
    """

    def __init__(
        self,
        url: str,
        *,
        token: Callable[[], str] | None,
        hook: str,
        cluster: str,
        clock: Clock,
        tls: ssl.SSLContext | None = None,
        timeout_s: float = 15.0,
        margin_s: float = 5.0,
    ) -> None:
        self._api = ApiClient(
            url,
            token=token,
            user_agent="faultline-hook",
            tls=tls,
            timeout_s=timeout_s,
            max_answer_bytes=ANSWER_BYTES,
            monotonic=clock.monotonic,
        )
        self._hook = hook
        self._cluster = cluster
        self._clock = clock
        self._margin_s = margin_s

    def lease(self, most: int, seconds: int) -> Sequence[Request]:
        """See `LeaseService`. An invalid request is refused at once and left out."""
        requested_at = self._clock.now()
        wanted = {"hook": self._hook, "cluster": self._cluster, "max": most, "seconds": seconds}
        answer = self._send("POST", ":lease", wanted)
        found = []
        for item in self._items(answer):
            try:
                request = read_request(item, self._good_until(item, requested_at, answer.at, seconds))
                _refuse_expired(item, request, answer.at or requested_at)
                found.append(request)
            except InvalidRequest as error:
                log.error("invalid request: %s", error)  # noqa: TRY400 - the text says it all
                self._refuse(error)
        return found

    def waiting(self, most: int) -> Sequence[Request]:
        """See `LeaseService`."""
        now = self._clock.now()
        query = urlencode({"state": "waiting", "cluster": self._cluster, "limit": most})
        found = []
        for item in self._items(self._send("GET", f"?{query}", None)):
            with suppress(InvalidRequest):
                found.append(read_request({**item, "lease_token": "none"}, now))
        return [one for one in found if one.not_before is None or one.not_before <= now]

    def ack(self, request_id: str, lease_token: str, settled: Settled) -> None:
        """See `LeaseService`."""
        fields = {"result": settled.result, "new_job_id": settled.new_job_id, "detail": _reported(settled.detail)}
        self._send("POST", f"/{request_id}:ack", {"lease_token": lease_token, **fields})

    def fail(self, request_id: str, lease_token: str, error: str, retry_after_s: float | None) -> None:
        """See `LeaseService`."""
        longest = RETRY_LONGEST_S if retry_after_s is None else min(retry_after_s, RETRY_LONGEST_S)
        fields = {"error": _reported(error), "retry_after_s": None if retry_after_s is None else longest}
        self._send("POST", f"/{request_id}:fail", {"lease_token": lease_token, **fields})

    def close(self) -> None:
        """Close the connection."""
        self._api.close()

    def _good_until(self, item: Any, requested_at: datetime, service_now: datetime | None, seconds: int) -> datetime:
        """Return the end of lease and request by this machine's clock, minus the safety margin."""
        granted = timedelta(seconds=seconds)
        for name in ("expires_at", "valid_until"):
            until = expiry_of(item, name)
            if until is not None:
                granted = min(granted, until - (service_now or requested_at))
        return requested_at + granted - timedelta(seconds=self._margin_s)

    def _refuse(self, error: InvalidRequest) -> None:
        if error.request_id is None or error.lease_token is None:
            return
        with suppress(LeaseLost):
            self.ack(error.request_id, error.lease_token, Settled("refused", f"this hook can't use it: {error}"))

    def _items(self, answer: Answer) -> list[Any]:
        items = answer.body.get("items") if isinstance(answer.body, dict) else answer.body
        if not isinstance(items, list):
            raise ServiceUnavailable(f"{self._api.host} answered no list of requests")
        return items

    def _send(self, method: str, path: str, content: Mapping[str, Any] | None) -> Answer:
        given = None if content is None else json.dumps(content).encode()
        try:
            response = self._api.request(method, f"/resubmissions{path}", given)
        except ApiUnreachable as error:
            raise ServiceUnavailable(str(error)) from None
        return _checked(self._api.host, response)


def _reported(text: str) -> str:
    """A text that the service takes: shortened, and without bytes of other programs that were not UTF-8."""
    return text[:LONGEST].encode("utf-8", "replace").decode()


def _refuse_expired(item: Any, request: Request, now: datetime) -> None:
    valid_until = expiry_of(item, "valid_until")
    if valid_until is not None and valid_until <= now:
        raise InvalidRequest("it has expired", request.request_id, request.lease_token)


def _checked(host: str, response: ApiResponse) -> Answer:
    """Return the answer of a successful request.

    Raises:
        LeaseLost, ServiceUnavailable, ServiceRefused: the request failed.
    """
    headers = response.headers
    if response.ok:
        return Answer(response.status, response.body, http_date(headers.get("date", "")), _retry_after(headers))
    message = f"{host} answered {response.status}" + (f": {response.detail}" if response.detail else "")
    if response.status in GONE:
        raise LeaseLost(message)
    if response.status in SLOW_DOWN or response.status >= SERVER:
        raise ServiceUnavailable(message, _retry_after(headers))
    raise ServiceRefused(message)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from a number or a date by the service's clock; at most RETRY_AFTER_LONGEST_S."""
    seconds = retry_after_s(headers.get("retry-after"), http_date(headers.get("date", "")))
    return None if seconds is None else min(seconds, RETRY_AFTER_LONGEST_S)
