import hashlib
import json
import os
import urllib.request

import peer
from job import Job


def fault(job):
    how, _, name = job.how.partition(":")
    base = os.environ.get("STORE") or f"http://{peer.start(name)}"
    if how == "retrieve":
        return urllib.request.urlretrieve(f"{base}/pretrained/{job.name}.npz", "weights.npz")
    with urllib.request.urlopen(f"{base}/{job.name}/labels.json", timeout=1.0) as answer:
        body = answer.read()
    if how == "digest":
        found = hashlib.sha256(body).hexdigest()
        assert found == "0" * 64, f"sha256 {found}"
    return json.loads(body)


Job().run(fault)
