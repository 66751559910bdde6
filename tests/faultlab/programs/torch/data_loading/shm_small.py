from engine import Job, torch
from torch.utils.data import DataLoader, Dataset


class Volumes(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.randn(4, 256, 256)


job = Job().prepare()
for step, batch in enumerate(DataLoader(Volumes(), batch_size=8, num_workers=2)):
    job.report(step, float(batch.mean()))
