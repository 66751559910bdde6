import sys

from engine import Job, torch


class Settings:
    rate = 0.1


job = Job().prepare()
if job.how == "save":
    torch.save({"model": job.model.state_dict(), "config": Settings()}, "full.pt")
    sys.exit()
job.say("loading full.pt")
state = torch.load("full.pt")
