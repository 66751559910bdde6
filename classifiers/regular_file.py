"""Files that a setting names: a device or a pipe may have no end, and waiting for one would stop the program."""

import errno
import os
import stat
from pathlib import Path


def read_regular(path: Path, most: int) -> tuple[bytes, int]:
    """The content of a file and its size in bytes; a file that is larger than `most` or grows is read in part.

    Raises:
        OSError: it can't be read, or is a device or a pipe.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123 - a descriptor
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return file.read(min(about.st_size, most)), about.st_size
