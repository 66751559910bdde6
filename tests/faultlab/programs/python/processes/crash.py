import ctypes
import faulthandler
import os
import signal
import sys

from job import Job


def fault(job):
    match job.how:
        case "null":
            ctypes.string_at(0)
        case "handler":
            faulthandler.enable()
            ctypes.memset(8, 0, 64)
        case "abort":
            faulthandler.enable()
            os.abort()
        case "recursion":
            def walk(node):
                return walk([node]) + 1

            return walk([])
        case "stack":
            sys.setrecursionlimit(10**7)

            def dig(n):
                return repr(n) and dig(n + 1) + 1

            import threading

            threading.stack_size(256 * 1024)
            worker = threading.Thread(target=dig, args=(0,))
            worker.start()
            worker.join()
        case "free":
            libc = ctypes.CDLL(None)
            libc.malloc.restype = ctypes.c_void_p
            libc.free.argtypes = [ctypes.c_void_p]
            block = libc.malloc(64)
            libc.free(block + 16)
        case "twice":
            libc = ctypes.CDLL(None)
            libc.malloc.restype = ctypes.c_void_p
            libc.free.argtypes = [ctypes.c_void_p]
            block = libc.malloc(2000)
            libc.free(block)
            libc.free(block)
        case "bus":
            import mmap

            with open("ring.bin", "w+b") as stream:
                stream.truncate(1 << 16)
                ring = mmap.mmap(stream.fileno(), 1 << 16)
                stream.truncate(0)
                return ring[100]
        case "float":
            os.kill(os.getpid(), signal.SIGFPE)


Job().run(fault)
