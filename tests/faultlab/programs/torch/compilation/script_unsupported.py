from engine import Job, torch


def mixed(x, *sizes):
    for size in sizes:
        yield x[:size]


job = Job().prepare()
job.train(until=6)
frozen = torch.jit.script(mixed)
