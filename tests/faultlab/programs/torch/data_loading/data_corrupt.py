import json

import numpy as np
from engine import Job

job = Job().prepare()
if job.how == "npz":
    arrays = np.load("data/train.npz")["x"]
elif job.how == "npy":
    arrays = np.load("data/train.npy")
elif job.how == "json":
    rows = [json.loads(line) for line in open("data/train.jsonl", encoding="utf-8")]
elif job.how == "text":
    text = open("data/corpus.txt", encoding="utf-8").read()
elif job.how == "gzip":
    import gzip

    text = gzip.open("data/corpus.txt.gz").read()
