from engine import Job, torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Rows(Dataset):
    def __init__(self, bad):
        self.bad = bad

    def __len__(self):
        return 6400

    def __getitem__(self, index):
        return torch.randn(20), int("7" if index != self.bad else "7;8")


job = Job(steps=600)
dist = job.join(seconds=12)
job.prepare()
model = job.parallel()
rows = Rows(job.at * 8 * job.world + job.who)
for step, (x, y) in enumerate(DataLoader(rows, batch_size=8, num_workers=1, sampler=DistributedSampler(rows, shuffle=False))):
    job.report(step, job.learn(x, y))
