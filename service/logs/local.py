"""Opens logs in local file systems; the path is chosen by a job's user and therefore not trusted.

The file is first opened as a reference only (O_PATH), which neither blocks on a FIFO nor activates a device. The checks
then apply to the opened file, so that it cannot be replaced between the check and the read.
"""

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

from service.logs.allowed_roots import AllowedRoots, LogRefused, split

_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


class LogNotFound(LogRefused):
    """The file does not exist yet; it may appear later."""


def path_of(uri: str) -> str:
    """Return the path of a `file:` URI or of a plain absolute path.

    Raises:
        LogRefused: the path is on another host, relative, or contains a null byte.
    """
    if uri.startswith("/"):
        path = uri
    else:
        parts = split(uri)
        if parts.netloc not in {"", "localhost"}:
            raise LogRefused("a file of another host")
        path = unquote(parts.path, errors="surrogateescape")
    if not path.startswith("/") or "\x00" in path:
        raise LogRefused("not an absolute path")
    return path


@contextmanager
def open_log(path: str, roots: AllowedRoots, user: str | None) -> Iterator[tuple[BinaryIO, int]]:
    """Open a log and yield the file and its size.

    Args:
        path: absolute path.
        roots: allowed directories.
        user: the job's user; if the system has a user of this name, the file must belong to that user.

    Raises:
        LogRefused: not a regular file of that user in a root; `LogNotFound` if it does not exist.
        OSError: the file system fails while reading.
    """
    reference = _reference(path)
    try:
        found = os.fstat(reference)
        for is_kind, name in _KINDS:
            if is_kind(found.st_mode):
                raise LogRefused(f"not a regular file but {name}")
        if not stat.S_ISREG(found.st_mode):
            raise LogRefused("not a regular file")
        if found.st_nlink == 0:
            raise LogNotFound("deleted meanwhile")
        if found.st_nlink > 1:
            raise LogRefused("the file has a second name (hard link)")
        roots.check_path(_resolved(reference))
        _check_owner(found.st_uid, user)
        opened = os.open(f"/proc/self/fd/{reference}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except PermissionError:
        raise LogRefused("permission denied") from None
    finally:
        os.close(reference)
    with os.fdopen(opened, "rb", buffering=0) as file:
        yield file, found.st_size


def _reference(path: str) -> int:
    try:
        return os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise LogNotFound("no such file") from None
    except PermissionError:
        raise LogRefused("permission denied") from None
    except (OSError, ValueError) as error:
        raise LogRefused(f"can't be opened ({getattr(error, 'strerror', None) or error})") from None


def _resolved(descriptor: int) -> str:
    """Return the real path of the opened file with all links resolved."""
    return str(Path(f"/proc/self/fd/{descriptor}").readlink())


def _check_owner(uid: int, user: str | None) -> None:
    if user is None:
        return
    try:
        expected = pwd.getpwnam(user).pw_uid
    except (KeyError, ValueError):
        return  # not a user of this system: only the roots are checked
    if uid != expected:
        raise LogRefused(f"the file does not belong to the job's user {user}")
