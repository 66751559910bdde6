import ctypes
import ctypes.util

from job import Job


def fault(job):
    if job.how == "symbol":
        return ctypes.CDLL(None).ncclCommInitRankConfig
    if job.how == "header":
        with open("libfastops.so", "wb") as stream:
            stream.write(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 120440\n")
        return ctypes.CDLL("./libfastops.so")
    return ctypes.CDLL(job.how)


Job().run(fault)
