import sys

from engine import Tiny, Job, torch

job = Job(model="gpt").prepare()
if job.how == "save":
    torch.save(Tiny(vocab=160).state_dict(), "pretrained.pt")
    sys.exit()
job.say("restoring pretrained.pt")
job.model.load_state_dict(torch.load("pretrained.pt"))
