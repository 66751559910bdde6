"""Log objects in a bucket of S3, of a server with the same protocol, or of Google Cloud Storage."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from typing import TYPE_CHECKING

from classifiers.redaction import redact
from service.errors import ConfigurationError, NotFound, Unavailable
from service.log_storage.objects import day_of
from service.log_storage.options import LogStorageOptions

if TYPE_CHECKING:
    from obstore.store import ObjectStore

CONNECT_S = 2
REQUEST_S = 5
# The answers to a wrong name, wrong credentials, missing rights or another region; after others, a retry may help.
_REFUSAL = re.compile(r"status code: (30[1278]|400|401|403|404)\b")
# Refusals that pass without a change of settings: a wrong clock, a token that is being renewed.
_PASSING = re.compile(r"<Code>(RequestTimeTooSkewed|RequestExpired|ExpiredToken|RequestTimeout)</Code>")


class BucketObjects:
    """A bucket, with an optional prefix of all keys.

    Credentials, region and endpoint come from the environment, as the clients of the cloud providers read it
    (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, GOOGLE_APPLICATION_CREDENTIALS ...), or from the machine's role.

    Args:
        options: the address of the bucket.

    Raises:
        ConfigurationError: the client is not installed, or the environment has wrong options for it.
    """

    def __init__(self, options: LogStorageOptions) -> None:
        try:
            from obstore.exceptions import BaseError  # noqa: PLC0415 -- an extra
            from obstore.store import from_url  # noqa: PLC0415 -- an extra
        except ImportError:
            raise ConfigurationError(
                f"FAULTLINE_LOG_STORE_URL names a bucket ({options.scheme}://), whose client is not installed: "
                "pip install 'faultline[object-storage]'"
            ) from None
        try:
            self._store: ObjectStore = from_url(
                options.url,
                client_options={
                    "connect_timeout": timedelta(seconds=CONNECT_S),
                    "timeout": timedelta(seconds=REQUEST_S),
                    "allow_http": options.allow_http,
                },
                retry_config={"max_retries": 1, "retry_timeout": timedelta(seconds=REQUEST_S)},
            )
        except (BaseError, ValueError, OSError) as error:
            raise ConfigurationError(f"FAULTLINE_LOG_STORE_URL: {_plain(error)}") from None

    def put(self, key: str, data: bytes) -> None:
        """See `Objects.put`."""
        with _errors_translated("written"):
            self._store.put(key, data)

    def get(self, key: str, size: int) -> bytes:
        """See `Objects.get`."""
        with _errors_translated("read"):
            try:
                found = self._store.get(key, options={"range": (0, size + 1)})
                return bytes(found.bytes())
            except FileNotFoundError:
                raise NotFound("the log is no longer in the log storage") from None

    def days(self) -> list[date]:
        """See `Objects.days`."""
        with _errors_translated("listed"):
            names = [path.rpartition("/")[2] for path in self._store.list_with_delimiter()["common_prefixes"]]
        return sorted(day for name in names if (day := day_of(name)) is not None)

    def remove_day(self, day: date) -> int:
        """See `Objects.remove_day`."""
        count, folder = 0, f"{day.isoformat()}/"
        with _errors_translated("removed"):
            for found in self._store.list(folder):
                paths = [one["path"] for one in found]
                if not all(path.startswith(folder) for path in paths):  # they may be anybody's
                    raise Unavailable(f"no log object was removed: asked for {folder}, the storage listed others")
                self._store.delete(paths)
                count += len(paths)
        return count

    def check(self) -> None:
        """See `Objects.check`."""
        with _errors_translated("listed"):
            try:
                self._store.list_with_delimiter("0000-00-00")
            except Exception as error:
                if _REFUSAL.search(str(error)) and not _PASSING.search(str(error)):
                    raise ConfigurationError(
                        f"FAULTLINE_LOG_STORE_URL: the storage refuses access, or has no such bucket: {_plain(error)}"
                    ) from None
                raise


@contextmanager
def _errors_translated(done: str) -> Iterator[None]:
    from obstore.exceptions import BaseError  # noqa: PLC0415 -- an extra

    try:
        yield
    except (BaseError, OSError) as error:
        raise Unavailable(f"a log object could not be {done}: {_plain(error)}") from None


def _plain(error: Exception) -> str:
    """The first line of an error, without secrets; the others are the client's internals."""
    return redact(str(error).partition("\n")[0])[:300]
