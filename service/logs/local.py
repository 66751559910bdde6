"""Opens logs in local file systems; the path is chosen by a job's user and therefore not trusted.

The file is first opened as a reference only (O_PATH), which neither blocks on a FIFO nor activates a device. The checks
then apply to the opened file, so that it cannot be replaced between the check and the read.
"""

import errno
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

from service.logs.allowed_roots import AllowedRoots, LogRefused, check_length, split

_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


LINKS_MOST = 40  # that Linux follows in one path


class LogNotFound(LogRefused):
    """The file does not exist yet; it may appear later."""


class LogUnavailable(LogRefused):
    """The file system or server fails at the moment; a later try may succeed."""


# Errors of a file system or network that pass: a server restarts, a mount is renewed.
_PASSING = frozenset(
    {errno.EAGAIN, errno.EBUSY, errno.EIO, errno.EREMOTEIO, errno.ESTALE, errno.ENOTCONN, errno.ESHUTDOWN}
    | {errno.ECONNABORTED, errno.ECONNREFUSED, errno.ECONNRESET, errno.EPIPE, errno.ETIMEDOUT}
    | {errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH}
    | {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
)


def is_passing(error: BaseException) -> bool:
    """Whether a later try may succeed where an operation of a file system or connection failed with this error."""
    return isinstance(error, ConnectionError | TimeoutError) or (isinstance(error, OSError) and error.errno in _PASSING)


@dataclass(frozen=True, slots=True)
class JobOwner:
    """The user of a job, by name, by the number that its scheduler states, or both."""

    user: str | None = None
    uid: int | None = None


def path_of(uri: str) -> str:
    """Return the path of a `file:` URI or of a plain absolute path.

    Raises:
        LogRefused: the path is on another host, relative, very long, or contains a null byte.
    """
    check_length(uri)
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
def open_log(path: str, roots: AllowedRoots, owner: JobOwner) -> Iterator[tuple[BinaryIO, int]]:
    """Open a log and yield the file and its size.

    Args:
        path: absolute path.
        roots: allowed directories.
        owner: the job's user. The file must belong to that user, unless it lies in a root of any owner.

    Raises:
        LogRefused: not a regular file of that user in a root; `LogNotFound` if it does not exist, `LogUnavailable` if
            the file system fails at the moment.
        OSError: the file system fails while reading.
    """
    # Before anything is opened, so that the reason of a refusal does not tell which files exist outside the roots.
    folder, name = os.path.split(path)
    roots.check_path(os.path.join(_resolved_folder(folder), name))  # noqa: PTH118 - keeps a trailing ".."
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
        resolved = _resolved(reference)
        roots.check_path(resolved)
        if not roots.any_owner_in(resolved):
            _check_owner(found.st_uid, owner)
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
        kind = LogUnavailable if is_passing(error) else LogRefused
        raise kind(f"can't be opened ({getattr(error, 'strerror', None) or error})") from None


def _resolved_folder(folder: str) -> str:
    """Return a folder with its links resolved, whether it exists or not.

    `os.path.realpath` follows any number of links, one within the other: it fails at a thousand, and takes seconds for
    some hundreds. The owner of a job makes such links in a minute, and names them in a thousand logs.

    Raises:
        LogRefused: there are more links than the system follows.
    """
    waiting, found, links = folder.split("/")[::-1], "/", 0
    while waiting:
        name = waiting.pop()
        if name in {"", "."}:
            continue
        if name == "..":
            found = os.path.dirname(found)  # noqa: PTH120 - a text, as all of this
            continue
        step = f"{found.rstrip('/')}/{name}"
        try:
            target = os.readlink(step)  # noqa: PTH115 - as above
        except (OSError, ValueError):  # no link, or not there
            found = step
            continue
        links += 1
        if links > LINKS_MOST:
            raise LogRefused(f"more than {LINKS_MOST} symbolic links")
        if target.startswith("/"):
            found = "/"
        waiting += target.split("/")[::-1]
    return found


def _resolved(descriptor: int) -> str:
    """Return the real path of the opened file with all links resolved."""
    return str(Path(f"/proc/self/fd/{descriptor}").readlink())


def _check_owner(uid: int, owner: JobOwner) -> None:
    """Check that a file's owner is the job's user.

    Raises:
        LogRefused: it is not, or the job's user cannot be established.
    """
    expected = _uid_of(owner.user)
    if owner.uid is not None and expected != owner.uid and (owner.uid == 0 or expected is not None):
        raise LogRefused(f"user {owner.user} and user id {owner.uid} of the job do not agree")
    expected = owner.uid if expected is None else expected
    if expected is None:
        user = "the event names no user" if owner.user is None else f"user {owner.user} is not known on this machine"
        raise LogRefused(f"the job's user cannot be established: {user} and the event has no uid")
    if uid != expected:
        raise LogRefused(f"the file does not belong to the job's user {owner.user or expected}")


def _uid_of(user: str | None) -> int | None:
    if user is None:
        return None
    try:
        return pwd.getpwnam(user).pw_uid
    except (KeyError, ValueError):
        return None
