"""Starts a program once a rank, marks each line with its rank, ends the others when one goes."""

import os
import selectors
import subprocess
import sys

count, *words = sys.argv[1:]
ranks, selector = [], selectors.DefaultSelector()
for rank in range(int(count)):
    env = {**os.environ, "RANK": str(rank), "WORLD_SIZE": count, "LOCAL_RANK": str(rank)}
    ranks.append(subprocess.Popen([sys.executable, "-u", *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    selector.register(ranks[-1].stdout, selectors.EVENT_READ, rank)
first = 0
while selector.get_map():
    for key, _ in selector.select():
        line = key.fileobj.readline()
        if line:
            print(f"{key.data}: {line}", end="", flush=True)
            continue
        selector.unregister(key.fileobj)
        code = ranks[key.data].wait()
        if code and not first:
            first = code
            print(f"launcher: rank {key.data} ended with {code}, {sum(r.poll() is None for r in ranks)} still running", flush=True)
            for other in ranks:
                other.terminate()
sys.exit(first if first > 0 else 128 - first if first else 0)
