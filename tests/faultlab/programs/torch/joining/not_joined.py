import torch.distributed as dist
from engine import Job, torch

job = Job().prepare()
if job.how == "ddp":
    job.parallel()
elif job.how == "sampler":
    sampler = torch.utils.data.distributed.DistributedSampler(list(range(64)))
else:
    dist.all_reduce(torch.ones(1))
