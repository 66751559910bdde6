import threading

from engine import Job, torch

job = Job().prepare()
job.train()
job.model.guard = threading.RLock() if job.how == "lock" else (lambda x: x)
job.say("saving whole model")
torch.save(job.model, "model_full.pt")
