import ctypes

from engine import Job

job = Job().prepare()
for step, (x, y) in job.steps():
    job.report(step, job.learn(x, y))
    if step == job.at:
        if job.how == "abort":
            ctypes.CDLL(None).abort()
        elif job.how == "double":
            libc = ctypes.CDLL(None)
            libc.malloc.restype = ctypes.c_void_p
            block = libc.malloc(64)
            libc.free(ctypes.c_void_p(block))
            libc.free(ctypes.c_void_p(block))
        else:
            if job.how == "handler":
                import faulthandler

                faulthandler.enable()
            ctypes.memset(8, 0, 64)
