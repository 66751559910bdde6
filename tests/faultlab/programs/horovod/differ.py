"""At one step a rank hands in something else than the others under the same name."""

from world import World, hvd, torch

job = World(steps=80).begin()
for step, (x, y) in job.steps():
    if step == job.at:
        how, mine = job.how, job.mine()
        name = f"metrics.{step}"
        if how == "shape":
            hvd.allreduce(torch.zeros(40 if mine else 8), name=name)
        elif how == "dims":
            hvd.allgather(torch.zeros(3, 4, 2) if mine else torch.zeros(3, 4), name=name)
        elif how == "inner":
            hvd.allgather(torch.zeros(3, 7 if mine else 5), name=name)
        elif how == "dtype":
            hvd.allreduce(torch.zeros(8, dtype=torch.float64 if mine else torch.float32), name=name)
        elif how == "call":
            (hvd.allgather if mine else hvd.allreduce)(torch.zeros(8), name=name)
        elif how == "op":
            hvd.allreduce(torch.ones(8), name=name, op=hvd.Max if mine else hvd.Min)
        elif how == "scale":
            hvd.allreduce(torch.ones(8), name=name, op=hvd.Sum, prescale_factor=0.5 if mine else 1.0)
        elif how == "root":
            hvd.broadcast(torch.ones(8), root_rank=1 if mine else 0, name=name)
        elif how == "scalar":
            hvd.allgather(torch.tensor(3.0), name=name)
        elif how == "root-range":
            hvd.broadcast(torch.ones(8), root_rank=hvd.size() + 3, name=name)
        elif how == "splits":
            hvd.alltoall(torch.ones(8), splits=torch.tensor([5] * hvd.size()), name=name)
    job.report(step, job.learn(x, y))
