from engine import Job, torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

job = Job(steps=600)
dist = job.join(seconds=10)
job.prepare()
fully_shard(job.model, mesh=init_device_mesh("cpu", (job.world,)))
job.optimizer = torch.optim.AdamW(job.model.parameters(), lr=0.01)
for step, (x, y) in job.steps():
    job.report(step, job.learn(x, y))
    if step == job.at and job.rank == job.who:
        x.view(7, -1, 11)
