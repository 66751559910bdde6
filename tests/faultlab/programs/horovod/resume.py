"""Rank 0 loads the checkpoint and tells the others; it is not there, is cut short, or fits another model."""

import os

from world import World, hvd, torch

job = World(steps=80)
hvd.init()
job.prepare()
path = "checkpoints/checkpoint-7.pt"
if job.how in {"cut", "differs", "garbage"} and hvd.rank() == 0:
    os.makedirs("checkpoints", exist_ok=True)
    other = torch.nn.Linear(20, 32)
    torch.save({"model": other.state_dict(), "epoch": 7}, path)
    if job.how == "cut":
        os.truncate(path, os.path.getsize(path) // 2)
    elif job.how == "garbage":
        with open(path, "wb") as stream:
            stream.write(os.urandom(3000))
start = 0
if hvd.rank() == 0 or job.how == "everywhere":
    job.say(f"resuming from {path}")
    state = torch.load(path)
    job.model.load_state_dict(state["model"])
    start = state["epoch"]
start = hvd.broadcast(torch.tensor(start), root_rank=0, name="resume_from_epoch").item()
hvd.broadcast_parameters(job.model.state_dict(), root_rank=0)
job.train()
