from engine import Job, torch

job = Job().prepare()
memory = []
for step, (x, y) in job.steps():
    job.report(step, job.learn(x, y))
    memory.append(torch.randn(job.args.batch, 16 if step < job.at else 17))
    if step > job.at:
        break
bank = torch.cat(memory)
print(bank.std())
