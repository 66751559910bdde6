import configparser
import os
from pathlib import Path

import numpy as np
from job import Job


def fault(job):
    root = Path(f"data/{job.name}")
    if job.how == "scan":
        return sorted(entry.name for entry in os.scandir(root / "train"))
    if job.how == "load":
        return np.load(root / f"shard-{job.at:05d}.npy")
    if job.how == "memmap":
        return np.memmap(f"/mnt/datasets/{job.name}/tokens.bin", dtype=np.uint16, mode="r")
    if job.how == "size":
        return os.path.getsize(f"/datasets/{job.name}/index.bin") // 8
    if job.how == "chdir":
        os.chdir(f"/scratch/{job.name}")
    if job.how == "text":
        return (root / "vocab.txt").read_text(encoding="utf-8").split("\n")
    if job.how == "resolve":
        return (root / "manifest.jsonl").resolve(strict=True)
    return None


Job().run(fault)
