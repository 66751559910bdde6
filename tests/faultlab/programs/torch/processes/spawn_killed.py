import os

import torch.multiprocessing as mp
from engine import Job, torch


def work(rank, world, port):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    job = Job(steps=300)
    job.join(seconds=8)
    job.prepare()
    model = job.parallel()
    for step, (x, y) in job.steps():
        job.report(step, job.learn(x, y))
        if step == job.at and rank == job.who:
            os.kill(os.getpid(), 9)


if __name__ == "__main__":
    mp.start_processes(work, args=(int(os.environ["WORLD"]), int(os.environ["FREE_PORT"])), nprocs=int(os.environ["WORLD"]), start_method=os.environ["START"])
