"""The allow-list of locations that logs may be read from."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from service.errors import ConfigurationError

_DEFAULT_PORTS = {"http": 80, "https": 443}
# File systems of the kernel contain no logs. /dev may: /dev/shm is a directory like any other.
_KERNELS_OWN = ("/proc", "/sys")
# Whoever sends an event chooses its addresses, and the work for one must not grow with the square of its length.
# A path of 4,096 bytes (PATH_MAX of Linux) has at most 12,288 characters in a URL; a signature needs about 2,000 more.
LONGEST = 16_384  # characters
_LAYERS = 4  # of percent signs that stand for percent signs


class LogRefused(Exception):
    """A log that must not or cannot be read; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class RemoteRoot:
    """All locations below `path` on one host (or in one bucket) with one scheme."""

    scheme: str
    host: str
    port: int | None
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AllowedRoots:
    """The parsed allow-list; `local` holds directories with links resolved.

    In the directories of `any_owner`, files are read regardless of their owner.
    """

    local: tuple[str, ...] = ()
    remote: tuple[RemoteRoot, ...] = ()
    any_owner: tuple[str, ...] = ()

    def any_owner_in(self, path: str) -> bool:
        """Whether the owner of a resolved path does not matter."""
        return any(_below(path, root) for root in self.any_owner)

    def _check_any(self) -> None:
        if not self.local and not self.remote:
            raise LogRefused("no place is set that logs may be read from (FAULTLINE_LOG_ROOTS)")

    def check_path(self, path: str) -> None:
        """Check that a resolved absolute path is below a root.

        Raises:
            LogRefused: it is not.
        """
        self._check_any()
        if not any(_below(path, root) for root in self.local):
            raise LogRefused("outside the places that logs may be read from")

    def check_url(self, url: str) -> None:
        """Check that a URL (of a log or a redirect) is below a root.

        Raises:
            LogRefused: it is not, or its spelling is ambiguous.
        """
        self._check_any()
        requested = remote_root(split(url))
        if requested.scheme not in {root.scheme for root in self.remote}:
            raise LogRefused(f"scheme {requested.scheme!r} is not among those that logs may be read by")
        for root in self.remote:
            same_place = (root.scheme, root.host, root.port) == (requested.scheme, requested.host, requested.port)
            if same_place and requested.path[: len(root.path)] == root.path and len(requested.path) > len(root.path):
                return
        raise LogRefused("outside the places that logs may be read from")

    def root_of(self, uri: str) -> str:
        """Return the root that a location seems to be below, without checking it; "" if there is none.

        Locations of one root are on the same file system or server, which answers or hangs for all of them.
        """
        try:
            parts = split(uri)
            if parts.scheme in {"", "file"}:
                path = os.path.normpath(unquote(parts.path) if parts.scheme else uri)
                return max((root for root in self.local if _below(path, root)), key=len, default="")
            wanted = remote_root(parts)
        except LogRefused:
            return ""
        for root in self.remote:
            if (root.scheme, root.host, root.port) == (wanted.scheme, wanted.host, wanted.port):
                return f"{root.scheme}://{root.host}:{root.port}"
        return ""


def split(url: str) -> SplitResult:
    """Split a URL.

    Raises:
        LogRefused: the text is not a URL, or a very long one.
    """
    check_length(url)
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise LogRefused("not a URL") from None
    if any(ord(letter) < ord(" ") for letter in url) or "\\" in url:
        raise LogRefused("a URL with control characters or backslashes")
    return parts


def check_length(address: str) -> None:
    """Check that an address is not longer than any file system or server takes.

    Raises:
        LogRefused: it is.
    """
    if len(address) > LONGEST:
        raise LogRefused(f"an address of more than {LONGEST:,} characters")


def remote_root(parts: SplitResult) -> RemoteRoot:
    """Return the location of a URL, without query and credentials.

    Raises:
        LogRefused: it has credentials, or a path with `..` in any spelling, or encoded many times over.
    """
    if parts.username is not None or parts.password is not None:
        raise LogRefused("a URL with credentials")
    path = parts.path
    for _ in range(_LAYERS):
        path = unquote(path)
    if unquote(path) != path:
        raise LogRefused("a path that is encoded many times over")
    steps = tuple(step for step in path.replace("\\", "/").split("/") if step)
    if any(step in {".", ".."} for step in steps):
        raise LogRefused("a path with . or ..")
    scheme = parts.scheme.lower()
    host = (parts.hostname or "").lower() if scheme in _DEFAULT_PORTS else parts.netloc
    return RemoteRoot(scheme, host, parts.port or _DEFAULT_PORTS.get(scheme), steps)


def parse_roots(roots: Sequence[str], any_owner: Sequence[str] = ()) -> AllowedRoots:
    """Parse the allow-list of FAULTLINE_LOG_ROOTS, and FAULTLINE_LOG_ROOTS_ANY_OWNER.

    Raises:
        ConfigurationError: an entry is neither an absolute directory nor a URL with a host, or is the whole file
            system or one of the kernel, or a directory of any owner is not in the allow-list.
    """
    local: list[str] = []
    remote: list[RemoteRoot] = []
    for root in roots:
        wrong = ""
        try:
            parts = split(root)
            if parts.scheme in {"", "file"} and not parts.netloc and parts.path.startswith("/"):
                path = os.path.realpath(unquote(parts.path) if parts.scheme else root)
                local.append(path)
                wrong = _too_wide(path)
            elif parts.scheme and parts.netloc:
                remote.append(remote_root(parts))
            else:
                wrong = "neither an absolute directory nor a URL with a host"
        except LogRefused as refused:
            wrong = str(refused)
        if wrong:
            raise ConfigurationError(
                f"FAULTLINE_LOG_ROOTS: {_without_login(root)!r} is {wrong}: expected an address such as "
                "/scratch/logs, s3://bucket/prefix or https://logs.example/path"
            )
    shared = tuple(os.path.realpath(folder) for folder in any_owner)
    for folder, resolved in zip(any_owner, shared, strict=True):
        if not folder.startswith("/") or not any(_below(resolved, root) for root in local):
            raise ConfigurationError(
                f"FAULTLINE_LOG_ROOTS_ANY_OWNER: expected directories in FAULTLINE_LOG_ROOTS: {folder!r}"
            )
    return AllowedRoots(tuple(local), tuple(remote), shared)


def _too_wide(path: str) -> str:
    """What is wrong with a resolved directory as a root; "" if nothing is."""
    if path == os.sep:
        return "the whole file system"
    return "a file system of the kernel" if any(_below(path, own) for own in _KERNELS_OWN) else ""


def _without_login(root: str) -> str:
    scheme, separator, place = root.partition("://")
    return f"{scheme}{separator}{place.rpartition('@')[2]}" if separator else root


def _below(path: str, root: str) -> bool:
    return Path(path).is_relative_to(root)
