import os

from engine import Job, torch

job = Job().prepare()
job.train()
os.makedirs("out", exist_ok=True)
job.say("saving checkpoint")
torch.save({"model": job.model.state_dict(), "step": job.at}, "out/last.pt")
