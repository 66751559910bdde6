import os
import signal
import time

from engine import Job, torch
from torch.utils.data import DataLoader, Dataset


class Frames(Dataset):
    def __init__(self, bad):
        self.bad = bad

    def __len__(self):
        return 4000

    def __getitem__(self, index):
        if index == self.bad:
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.randn(20), index % 10


job = Job(steps=600)
dist = job.join(seconds=12)
job.prepare()
model = job.parallel()
bad = job.at * 8 if job.rank == job.who else -1
for step, (x, y) in enumerate(DataLoader(Frames(bad), batch_size=8, num_workers=1)):
    job.report(step, job.learn(x, y))
