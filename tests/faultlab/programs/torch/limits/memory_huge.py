from engine import Job, torch

job = Job().prepare()
job.train()
pairs = 4_000_000
similarity = torch.empty(pairs, pairs)
