"""A real file system whose files can hang, as those of a network file system do: FUSE, served by this process.

It has one folder with files of fixed contents. Needs root and /dev/fuse.
"""

import ctypes
import errno
import os
import stat
import struct
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

DEVICE: Final = Path("/dev/fuse")
_LOOKUP, _FORGET, _GETATTR, _OPEN, _READ, _INIT, _BATCH_FORGET = 1, 2, 3, 14, 15, 26, 42
_RELEASED = {18, 25, 27, 29}  # release, flush, opendir, releasedir: nothing to do
_REQUEST = struct.Struct("<IIQQIIII")
_DETACH = 2


class FuseFolder:
    """The mounted folder at `path`. While it hangs, reads of its files do not return."""

    def __init__(self, path: Path, files: Mapping[str, bytes]) -> None:
        self.path = path
        self.asked = threading.Event()  # a read of a file has arrived
        self._files = list(files.items())
        self._answering = threading.Event()
        self._answering.set()
        self._device = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
        self._libc = ctypes.CDLL(None, use_errno=True)
        options = f"fd={self._device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        if self._libc.mount(b"files", os.fsencode(path), b"fuse", 0, options):
            os.close(self._device)
            raise OSError(ctypes.get_errno(), "mount")
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def hang(self) -> None:
        """Answer no more reads."""
        self.asked.clear()
        self._answering.clear()

    def answer(self) -> None:
        """Answer the waiting reads and all further ones."""
        self._answering.set()

    def close(self) -> None:
        """Unmount it; waiting reads fail."""
        self.answer()
        self._libc.umount2(os.fsencode(self.path), _DETACH)
        self._thread.join(10)
        os.close(self._device)

    def _serve(self) -> None:
        while True:
            try:
                request = os.read(self._device, 1 << 18)
            except OSError as error:
                if error.errno in {errno.ENOENT, errno.EINTR}:
                    continue
                return  # unmounted
            code, unique, node = _REQUEST.unpack_from(request)[1:4]
            if code == _READ and not self._answering.is_set():
                self.asked.set()
                threading.Thread(target=self._later, args=(code, unique, node, request), daemon=True).start()
            elif code not in {_FORGET, _BATCH_FORGET}:
                self._reply(unique, self._answer(code, node, request[_REQUEST.size :]))

    def _later(self, code: int, unique: int, node: int, request: bytes) -> None:
        self._answering.wait()
        self._reply(unique, self._answer(code, node, request[_REQUEST.size :]))

    def _reply(self, unique: int, body: bytes | int) -> None:
        failed, content = (body, b"") if isinstance(body, int) else (0, body)
        with suppress(OSError):  # the reader has gone
            os.write(self._device, struct.pack("<IiQ", 16 + len(content), -failed, unique) + content)

    def _answer(self, code: int, node: int, body: bytes) -> bytes | int:
        """The body of the answer, or the number of an error."""
        if code == _INIT:
            return struct.pack("<IIIIHHIIHHI28x", 7, 31, 65536, 0, 12, 10, 65536, 1, 16, 0, 0)
        if code == _LOOKUP:
            name = os.fsdecode(body.rstrip(b"\0"))
            found = [place for place, (file, _) in enumerate(self._files, start=2) if file == name]
            return (
                struct.pack("<QQQQII", found[0], 0, 0, 0, 0, 0) + self._attributes(found[0]) if found else errno.ENOENT
            )
        if code == _GETATTR:
            return struct.pack("<QII", 0, 0, 0) + self._attributes(node)
        if code == _OPEN:
            return struct.pack("<QIi", 0, 1, 0)  # direct: no page cache, so that each read comes here
        if code == _READ:
            offset, size = struct.unpack_from("<8xQI", body)
            return self._files[node - 2][1][offset : offset + size]
        return b"" if code in _RELEASED else errno.ENOSYS

    def _attributes(self, node: int) -> bytes:
        folder = node == 1
        size = 0 if folder else len(self._files[node - 2][1])
        mode = stat.S_IFDIR | 0o755 if folder else stat.S_IFREG | 0o644
        return struct.pack("<QQQQQQIIIIIIIIII", node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def available() -> bool:
    """Return whether this process may mount such a file system."""
    return os.geteuid() == 0 and DEVICE.exists() and os.access(DEVICE, os.R_OK | os.W_OK)


@contextmanager
def fuse_folder(files: Mapping[str, bytes]) -> Iterator[FuseFolder]:
    """Yield a mounted folder with these files.

    Raises:
        OSError: the kernel refuses the device or the mount.
    """
    path = Path(tempfile.mkdtemp(prefix="faultline-fuse-"))
    try:
        folder = FuseFolder(path, files)
        try:
            yield folder
        finally:
            folder.close()
    finally:
        path.rmdir()
