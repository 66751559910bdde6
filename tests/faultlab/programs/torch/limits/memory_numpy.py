import numpy as np
from engine import Job

job = Job().prepare()
job.train()
table = np.zeros((9_000_000, 900_000)) if job.how == "" else np.ones((40_000, 40_000)) @ np.ones((40_000, 40_000))
