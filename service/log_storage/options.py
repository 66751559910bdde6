"""Options of the log storage, and the check of its address. Nothing here imports the rest of the service."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import urlsplit

EXPECTED = "s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or file:///FOLDER, without login and options"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}")
_FOLDER = re.compile(r"(?:/[\w.=-]+)*/?")


@dataclass(frozen=True, slots=True)
class LogStorageOptions:
    """An address; see the settings FAULTLINE_LOG_STORE_*. `allow_http`: the endpoint of a bucket may have no TLS."""

    url: str
    allow_http: bool = False

    @property
    def scheme(self) -> str:
        """The kind of storage: s3, gs or file."""
        return urlsplit(self.url).scheme

    @property
    def folder(self) -> str:
        """The path of a file:// address."""
        return urlsplit(self.url).path


def checked_url(url: str) -> str:
    """The address of the log storage.

    Raises:
        ValueError: it is no address of a bucket or folder, or it carries a login or options.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError(EXPECTED) from None
    if parts.scheme == "file":
        place = not parts.netloc and parts.path.startswith("/") and parts.path.strip("/") != ""
    else:
        place = parts.scheme in {"s3", "gs"} and _BUCKET.fullmatch(parts.netloc) is not None
    steps = PurePosixPath(parts.path).parts
    if not place or "?" in url or "#" in url or not _FOLDER.fullmatch(parts.path) or ".." in steps:
        raise ValueError(EXPECTED)
    return url
