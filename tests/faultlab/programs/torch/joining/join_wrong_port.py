from engine import Job, torch

job = Job()
job.say("joining")
dist = job.join(seconds=8)
job.prepare()
job.train()
