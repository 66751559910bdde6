from engine import Job, nn, torch
from torch.utils.data import DataLoader, TensorDataset

job = Job().prepare()
data = TensorDataset(torch.randn(64, 4))
makers = {
    "batch": lambda: DataLoader(data, batch_size=0),
    "rate": lambda: torch.optim.AdamW(job.model.parameters(), lr=-1e-3),
    "empty": lambda: torch.optim.Adam([], lr=1e-3),
    "dropout": lambda: nn.Dropout(1.5),
    "sampler": lambda: DataLoader(data, shuffle=True, sampler=torch.utils.data.RandomSampler(data)),
}
job.train()
made = makers[job.how]()
