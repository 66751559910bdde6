import os

import peer
import requests
from job import Job
from requests.adapters import HTTPAdapter, Retry


def fault(job):
    how, _, name = job.how.partition(":")
    base = os.environ.get("STORE") or f"http://{peer.start(name)}"
    if how == "plain":
        answer = requests.get(f"{base}/datasets/{job.name}/manifest.json", timeout=1.0)
        answer.raise_for_status()
        return answer.json()
    if how == "session":
        session = requests.Session()
        session.mount("http://", HTTPAdapter(max_retries=Retry(3, backoff_factor=0.01, status_forcelist=[429, 500, 502, 503, 504])))
        return session.get(f"{base}/shards/{job.at:05d}.tar", timeout=1.0)
    if how == "stream":
        with requests.get(f"{base}/models/{job.name}.bin", stream=True, timeout=1.0) as answer:
            answer.raise_for_status()
            with open("model.bin", "wb") as out:
                for block in answer.iter_content(1 << 16):
                    out.write(block)
            return None
    if how == "post":
        return requests.post(f"{base}/api/runs", json={"name": job.name, "step": job.at}, timeout=1.0).json()["id"]
    return None


Job().run(fault)
