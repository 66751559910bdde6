"""Log objects as files in a folder, readable by their owner only."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path

from service.errors import ConfigurationError, NotFound, Unavailable
from service.log_storage.objects import day_of


class FileObjects:
    """A folder, which may be on a shared file system.

    Args:
        folder: it has to exist.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, key: str, data: bytes) -> None:
        """See `Objects.put`. The file is on the disk before its name is, and so are the names of new folders."""
        target = self._folder / key
        folders = target.parents[: len(target.relative_to(self._folder).parts)]
        part = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        with _errors_translated("written"):
            for folder in reversed(folders[:-1]):  # `parents=True` would let others list the outer ones
                folder.mkdir(mode=0o700, exist_ok=True)
            try:
                descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                part.replace(target)
            except BaseException:
                with suppress(OSError):
                    part.unlink(missing_ok=True)
                raise
            for folder in folders:  # all of them: another thread may have made one, and not synced it yet
                _sync_folder(folder)

    def get(self, key: str, size: int) -> bytes:
        """See `Objects.get`."""
        with _errors_translated("read"):
            try:
                with (self._folder / key).open("rb") as file:
                    return file.read(size + 1)
            except FileNotFoundError:
                raise NotFound("the log is no longer in the log storage") from None

    def days(self) -> list[date]:
        """See `Objects.days`."""
        with _errors_translated("listed"), os.scandir(self._folder) as entries:
            names = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
        return sorted(day for name in names if (day := day_of(name)) is not None)

    def remove_day(self, day: date) -> int:
        """See `Objects.remove_day`."""
        folder = self._folder / day.isoformat()
        with _errors_translated("removed"):
            count = sum(1 for _ in folder.rglob("*.zst"))
            shutil.rmtree(folder)
        return count

    def check(self) -> None:
        """See `Objects.check`."""
        if not self._folder.is_dir() or not os.access(self._folder, os.W_OK | os.X_OK):
            raise ConfigurationError(f"FAULTLINE_LOG_STORE_URL: {self._folder} is not a folder that may be written")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _errors_translated(done: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(f"a log file could not be {done}: {error.strerror}") from None
