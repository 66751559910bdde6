import sys

from engine import Job, torch

job = Job().prepare()
if job.how == "save":
    groups = [{"params": [p]} for p in job.model.parameters()]
    torch.save({"optimizer": torch.optim.SGD(groups, lr=0.1).state_dict()}, "resume.pth")
    sys.exit()
job.train()
job.optimizer.load_state_dict(torch.load("resume.pth")["optimizer"])
