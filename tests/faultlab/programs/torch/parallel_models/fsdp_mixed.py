from engine import Job, torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

job = Job(steps=600)
dist = job.join(seconds=10)
job.prepare()
mesh = init_device_mesh("cpu", (job.world,))
for layer in job.model:
    if list(layer.parameters()):
        fully_shard(layer, mesh=mesh)
fully_shard(job.model, mesh=mesh)
job.optimizer = torch.optim.SGD(job.model.parameters(), lr=0.01)
for step, (x, y) in job.steps():
    job.report(step, job.learn(x, y))
    if step == job.at:
        penalty = job.model[0].weight * torch.ones(64, 20)
