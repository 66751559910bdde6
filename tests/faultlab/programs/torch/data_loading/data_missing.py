import os

import numpy as np
from engine import Job, torch

job = Job().prepare()
if job.how == "listdir":
    shards = os.listdir(f"/mnt/datasets/{job.dataset}/train")
elif job.how == "memmap":
    np.memmap(f"data/{job.dataset}_train.bin", dtype=np.uint16, mode="r")
elif job.how == "list":
    for step, name in enumerate([f"shard_{n:05d}.npy" for n in range(9)]):
        np.load(f"data/{name}")
elif job.how == "config":
    with open("configs/train.yaml", encoding="utf-8") as stream:
        stream.read()
