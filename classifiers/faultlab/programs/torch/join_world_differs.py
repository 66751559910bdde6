from engine import Job, torch

job = Job()
job.say("joining")
dist = job.join(seconds=5)
job.prepare()
job.train()
