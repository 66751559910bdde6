"""The ranks build different models, so what rank 0 gives away does not fit the others."""

from world import World, hvd, torch

job = World(steps=80)
hvd.init()
job.prepare()
if job.mine():
    if job.how == "wide":
        job.model = torch.nn.Sequential(torch.nn.Linear(20, 96), torch.nn.ReLU(), torch.nn.Linear(96, 10))
    elif job.how == "half":
        job.model = job.model.half()
    elif job.how == "double":
        job.model = job.model.double()
if job.how == "wide" and not job.mine():
    job.model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
hvd.broadcast_parameters(job.model.state_dict(), root_rank=0)
job.optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(job.model.parameters(), lr=0.01), named_parameters=job.model.named_parameters()
)
job.train()
