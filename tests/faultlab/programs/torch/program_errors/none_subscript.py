from engine import Job
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, job):
        self.job = job
        self.cache = None

    def __len__(self):
        return 400

    def __getitem__(self, index):
        if index > self.job.at * 4:
            return self.cache[index]
        return self.job.make(1)[0]


job = Job().prepare()
for step, batch in enumerate(DataLoader(Images(job), batch_size=4, num_workers=2 if job.args.noise else 0)):
    job.report(step, float(batch.float().mean()))
