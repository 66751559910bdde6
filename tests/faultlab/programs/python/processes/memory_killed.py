import numpy as np
from job import Job


def fault(job):
    kept = []
    while True:
        if job.how == "decode":
            kept.append(np.frombuffer(bytes(4 << 20), dtype=np.uint8).astype(np.float32))
        else:
            kept.append({n: str(n) * 20 for n in range(20_000)})
        if len(kept) % 4 == 0:
            job.say(f"cached {len(kept)} shards in memory")


Job().run(fault)
