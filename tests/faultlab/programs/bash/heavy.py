import ctypes
import os
import sys
import tempfile

import numpy as np

how = sys.argv[1]
print(f"preparing {how} on {os.uname().nodename}")
if how == "files":
    kept = []
    for n in range(400):
        kept.append(open(os.path.join(tempfile.gettempdir(), f"shard-{n}"), "w"))
elif how == "cpu":
    x = np.random.default_rng(0).normal(size=(300, 300))
    while True:
        x = np.tanh(x @ x)
elif how == "size":
    with open("features.bin", "wb") as out:
        for n in range(400):
            out.write(bytes(4096))
elif how == "memory":
    print(np.ones((400_000_000,)).sum())
elif how == "locked":
    libc = ctypes.CDLL(None, use_errno=True)
    block = ctypes.create_string_buffer(1 << 24)
    if libc.mlock(block, 1 << 24):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
