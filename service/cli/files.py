"""Input and output files named on the command line; an unusable file is a usage error, reported in one line."""

import os
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from service.errors import ConfigurationError
from service.setting_texts import small_text

STANDARD_INPUT = "-"


def check_readable(names: Sequence[str]) -> None:
    """Check that each file can be opened, before anything is processed; `-` is standard input.

    A pipe is not opened: its writer would end when it is closed again.

    Raises:
        ConfigurationError: names the first file that can't be opened.
    """
    for name in names:
        if name != STANDARD_INPUT and not Path(name).is_fifo():
            with opened_input(name):
                pass


@contextmanager
def opened_input(name: str) -> Iterator[IO[bytes]]:
    """Open a file, or standard input for `-`, for reading.

    Raises:
        ConfigurationError: the file can't be opened.
    """
    if name == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    try:
        file = Path(name).open("rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise ConfigurationError(f"{name}: {error.strerror}") from None
    with file:
        yield file


def read_input(name: str) -> bytes:
    """Return the content of a file, or of standard input for `-`.

    Raises:
        ConfigurationError: the file can't be read.
    """
    with opened_input(name) as source:
        try:
            return source.read()
        except OSError as error:
            raise ConfigurationError(f"{name}: {error.strerror}") from None


def read_token(path: Path) -> str:
    """Return the API token in the file of the option `--token-file`.

    Raises:
        ConfigurationError: the file can't be read, or holds something else than one token.
    """
    try:
        token = small_text(path, "ascii")
    except OSError as error:
        raise ConfigurationError(f"--token-file: {path}: {error.strerror}") from None
    except ValueError:
        token = ""
    if not token or not token.isprintable() or " " in token:
        raise ConfigurationError(f"--token-file: {path}: expected one API token and nothing else")
    return token


def check_writable(path: Path | None) -> None:
    """Check that a file can be created or overwritten, before anything is done; None is standard output.

    Raises:
        ConfigurationError: the file can't be created or overwritten.
    """
    if path is None:
        return
    if path.is_dir():
        raise ConfigurationError(f"{path}: expected a file, this is a folder")
    if not path.parent.is_dir():
        raise ConfigurationError(f"{path}: the folder {path.parent} does not exist")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ConfigurationError(f"{path}: no permission to write")


def check_folder_writable(folder: Path) -> None:
    """Check that a folder can be made or replaced, before anything is done. The folders above it are made.

    Raises:
        ConfigurationError: the folder can't be made or replaced.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigurationError(f"{folder}: expected a folder, this is a file")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder.parent):
            pass
    except OSError as error:
        raise ConfigurationError(f"{folder}: {error.strerror}") from error


@contextmanager
def opened_output(path: Path | None, *, private: bool = False) -> Iterator[IO[bytes]]:
    """Open a file for writing; None is standard output, which is flushed at the end.

    A file is replaced at the end of the `with` block, so that an error leaves the one before as it was. What is written
    to a link, a device, a pipe, the file of another user or in a folder of others goes there at once.

    Args:
        path: the file.
        private: whether a new file is for its owner only.

    Raises:
        ConfigurationError: the file can't be opened.
    """
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        part, file = _beside(path, 0o600 if private else 0o666) or (None, path.open("wb"))
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None
    try:
        with file:
            yield file
        if part is not None:
            part.replace(path)
    except BaseException:
        if part is not None:
            part.unlink(missing_ok=True)
        raise


def _beside(path: Path, mode: int) -> tuple[Path, IO[bytes]] | None:
    """Create a file beside a file, with the mode of that one if there is one; None where it can't be replaced by it.

    Raises:
        OSError: it can't be created.
    """
    before = path.lstat() if os.path.lexists(path) else None
    if before is not None and not (stat.S_ISREG(before.st_mode) and before.st_uid == os.geteuid()):
        return None
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except PermissionError:
        return None
    if before is not None:
        os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
    return part, open(descriptor, "wb")  # noqa: PTH123 - a descriptor


def write_output(path: Path | None, content: bytes) -> None:
    """Write to a file, or to standard output for None.

    Raises:
        ConfigurationError: the file can't be written.
    """
    with opened_output(path) as out:
        out.write(content)
