import sys

from engine import Job, build, torch

job = Job().prepare()
if job.how == "save":
    state = job.model.state_dict()
    torch.save({f"module.{name}": value for name, value in state.items()}, "best.pt")
    sys.exit()
job.say("loading weights from best.pt")
job.model.load_state_dict(torch.load("best.pt"))
