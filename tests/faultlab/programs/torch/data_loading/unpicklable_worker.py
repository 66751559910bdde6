from engine import Job, torch
from torch.utils.data import DataLoader, Dataset


class Lazy(Dataset):
    def __init__(self, how):
        self.transform = (lambda x: x * 2) if how == "lambda" else open(__file__, encoding="utf-8")

    def __len__(self):
        return 32

    def __getitem__(self, index):
        return self.transform(torch.ones(2))


if __name__ == "__main__":
    job = Job().prepare()
    job.train()
    for batch in DataLoader(Lazy(job.how), num_workers=2, multiprocessing_context="spawn"):
        pass
