import ctypes
import faulthandler
import mmap

from world import World


def fault(world):
    match world.how:
        case "null":
            ctypes.string_at(0)
        case "handler":
            faulthandler.enable()
            ctypes.string_at(1)
        case "free":
            libc = ctypes.CDLL(None)
            libc.free.argtypes = [ctypes.c_void_p]
            libc.free(0x1234560)
        case "bus":
            with open(f"map{world.rank}", "w+b") as stream:
                stream.truncate(4096 * 8)
                area = mmap.mmap(stream.fileno(), 4096 * 8)
                stream.truncate(0)
                area[5000] = 1
        case "divide":
            libc = ctypes.CDLL(None)
            libc.raise_ = getattr(libc, "raise")
            libc.raise_(8)


World().run(fault)
