"""Elastic training whose state is told anew after each change; a worker fails as asked."""

import os
import sys
import time

from world import World, hvd, torch

job = World(steps=200)
hvd.init()
job.prepare()
optimizer = hvd.DistributedOptimizer(job.optimizer, named_parameters=job.model.named_parameters())


@hvd.elastic.run
def train(state):
    for step in range(state.step, job.args.steps):
        if step == job.at and hvd.rank() == job.who % hvd.size():
            if job.how == "exit":
                sys.exit(7)
            if job.how == "key":
                {}["shard"]  # noqa: B018
            if job.how == "abort":
                os.abort()
            if job.how == "once" and not os.path.exists("failed"):
                open("failed", "w").close()
                os._exit(1)
        if job.how == "every" and step % 20 == 19 and hvd.rank() == hvd.size() - 1:
            os._exit(1)
        x, y = job.make(job.args.batch)
        optimizer.zero_grad()
        loss = job.criterion(job.model(x), y)
        loss.backward()
        optimizer.step()
        state.step = step
        if step % 10 == 0:
            state.commit()
        job.report(step, float(loss.detach()))
        time.sleep(0.01)


train(hvd.elastic.TorchState(model=job.model, optimizer=optimizer, step=0))
