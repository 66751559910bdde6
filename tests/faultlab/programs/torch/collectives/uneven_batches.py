from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
mine = job.at if job.rank == job.who else job.at + 40
for step, (x, y) in zip(range(mine), (job.make(job.args.batch) for _ in range(10_000))):
    job.report(step, job.learn(x, y))
job.say("epoch done, evaluating")
correct = torch.tensor([1.0])
dist.all_reduce(correct)
dist.barrier()
