import os

import httpx
import peer
from job import Job


def fault(job):
    base = os.environ.get("STORE") or f"http://{peer.start(job.how)}"
    with httpx.Client(base_url=base, timeout=1.0) as client:
        client.get("/v1/features", params={"table": job.name}).raise_for_status()


Job().run(fault)
