"""A file system in user space that answers some calls with an error number, as a sick server would."""

import errno
import os
import stat
import sys
import time

import fuse


class Sick(fuse.Operations):
    def __init__(self, call, number, after):
        self.call, self.number, self.after, self.seen = call, number, after, 0

    def _sick(self, call):
        if call == self.call:
            self.seen += 1
            if self.seen > self.after:
                raise fuse.FuseOSError(self.number)

    def getattr(self, path, fh=None):
        self._sick("getattr" if path != "/" else "root")
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2, "st_mtime": time.time()}
        if path.startswith("/new"):
            if not getattr(self, "made", False):
                raise fuse.FuseOSError(errno.ENOENT)
            return {"st_mode": stat.S_IFREG | 0o644, "st_size": 0, "st_nlink": 1}
        return {"st_mode": stat.S_IFREG | 0o644, "st_size": 4 << 20, "st_nlink": 1}

    def readdir(self, path, fh):
        self._sick("readdir")
        return [".", "..", "shard.bin", "index.json"]

    def open(self, path, flags):
        self._sick("open")
        return 3

    def create(self, path, mode, fi=None):
        self._sick("create")
        self.made = True
        return 4

    def read(self, path, size, offset, fh):
        self._sick("read")
        return b"7" * min(size, (4 << 20) - offset)

    def write(self, path, data, offset, fh):
        self._sick("write")
        return len(data)

    def truncate(self, path, length, fh=None):
        return None

    def flush(self, path, fh):
        self._sick("flush")

    def fsync(self, path, datasync, fh):
        self._sick("fsync")

    def release(self, path, fh):
        return 0


fuse.FUSE(Sick(sys.argv[2], getattr(errno, sys.argv[3]), int(sys.argv[4])), sys.argv[1], foreground=True, nothreads=True, ro=False)
