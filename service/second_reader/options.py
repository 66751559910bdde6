"""Options of the second reader, and the check of its address. It imports only `internet_addresses`."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from service.internet_addresses import is_loopback


@dataclass(frozen=True, slots=True)
class SecondReaderOptions:
    """An endpoint and its limits; see the settings FAULTLINE_SECOND_READER_*."""

    url: str
    model: str
    api_key: str | None
    timeout_s: float
    hourly_limit: int
    allow_http: bool


def checked_url(url: str, *, allow_http: bool) -> str:
    """The base address of an endpoint.

    Raises:
        ValueError: it is no plain address, or it has no TLS, leads to another machine and that is not allowed.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    plain = parts.username is None and not parts.query and not parts.fragment and not any(one.isspace() for one in url)
    if parts.scheme not in {"http", "https"} or not host or not plain:
        raise ValueError("an address without login, such as https://llm.example/v1")
    if parts.scheme == "http" and not allow_http and not is_loopback(host):
        raise ValueError("https://, or an address of this machine (FAULTLINE_SECOND_READER_ALLOW_HTTP allows others)")
    return url
