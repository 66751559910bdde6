import sys

from engine import Job, torch

job = Job().prepare()
if job.how == "save":
    from torch import serialization

    serialization.register_package(1, lambda obj: "cuda:0", lambda obj, where: None)
    torch.save(job.model.state_dict(), "gpu.pt")
    sys.exit()
job.say("loading gpu.pt")
job.model.load_state_dict(torch.load("gpu.pt"))
