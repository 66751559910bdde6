import sys

from engine import Job, torch

job = Job().prepare()
if job.how == "save":
    torch.save({"state_dict": job.model.state_dict(), "step": 5}, "last.pt")
    sys.exit()
saved = torch.load("last.pt")
job.say("resuming from last.pt")
job.model.load_state_dict(saved["model"])
