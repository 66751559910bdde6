"""What is told to the other ranks is of a kind that cannot be."""

import threading

from world import World, hvd, torch

job = World(steps=80)
hvd.init()
job.prepare()
how = job.how
if how == "lock":
    hvd.broadcast_object({"epoch": 3, "guard": threading.Lock()}, root_rank=0, name="state")
elif how == "generator":
    hvd.allgather_object((n for n in range(job.rank)), name="samples")
elif how == "model":
    hvd.broadcast_parameters(job.model, root_rank=0)
elif how == "lbfgs":
    hvd.broadcast_optimizer_state(torch.optim.LBFGS(job.model.parameters()), root_rank=0)
elif how == "plain":
    hvd.broadcast_parameters({"epoch": 3, **job.model.state_dict()}, root_rank=0)
elif how == "number":
    hvd.allreduce(3.5, name="loss")
elif how == "complex":
    hvd.allreduce(torch.zeros(4, dtype=torch.complex64), name="spectrum")
elif how == "strided":
    hvd.allreduce_(torch.zeros(6, 4).t(), name="weights")
elif how == "kinds":
    told = hvd.broadcast_object([1, 2] if job.rank else {"lr": 0.1}, root_rank=0, name="config")
    job.say(f"learning rate {told['learning_rate']}")
job.train()
