import torch.distributed.checkpoint as dcp
from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=10)
job.prepare()
state = {"model": job.model.state_dict()}
if job.how == "keys":
    dcp.save({"model": {"other": torch.ones(2)}}, checkpoint_id="snapshots/step_100")
    dcp.load(state, checkpoint_id="snapshots/step_100")
else:
    dcp.load(state, checkpoint_id="snapshots/step_900")
