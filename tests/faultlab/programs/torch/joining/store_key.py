import datetime

from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    if step == job.at:
        store = torch.distributed.distributed_c10d._get_default_store()
        store.set_timeout(datetime.timedelta(seconds=3))
        store.get("epoch_token" if job.rank == job.who else "rank_done")
    job.report(step, job.learn(x, y))
