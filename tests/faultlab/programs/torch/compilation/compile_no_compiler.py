from engine import Job, torch

job = Job().prepare()
job.train(until=4)


@torch.compile
def fused(x):
    return torch.relu(x.sin() * 3 + x.cos())


print(fused(torch.randn(64, 64)).sum())
