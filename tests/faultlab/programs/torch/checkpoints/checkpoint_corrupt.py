import sys

from engine import Job, torch

job = Job().prepare()
if job.how == "save":
    torch.save(job.model.state_dict(), "model.pt")
    sys.exit()
job.say("loading checkpoint model.pt")
job.model.load_state_dict(torch.load("model.pt"))
job.train()
