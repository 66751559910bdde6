from engine import Job, torch

job = Job().prepare()
job.train()
cache = []
while True:
    cache.append(torch.ones(64, 1024, 1024 // 4))
    job.say(f"cached {len(cache)} blocks")
