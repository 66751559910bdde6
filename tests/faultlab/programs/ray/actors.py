import os
import time

import numpy as np
import ray
from cell import Cell

cell = Cell()


@ray.remote(max_restarts=0)
class Trainer:
    def __init__(self, rank, how):
        self.rank, self.how, self.weights = rank, how, np.zeros(8)
        if how == "init" and rank == 1:
            raise ValueError(f"rank {rank}: {os.environ.get('CUDA_VISIBLE_DEVICES')!r}")

    def step(self, number):
        time.sleep(0.02)
        if number == 4 and self.rank == 1:
            if self.how == "exit":
                os._exit(1)
            if self.how == "kill":
                os.kill(os.getpid(), 9)
            if self.how == "attribute":
                return self.optimizer.step()
            if self.how == "shape":
                self.weights += np.ones(9)
            if self.how == "leave":
                ray.actor.exit_actor()
        return float(self.weights.sum())


if cell.how == "resources":
    trainers = [Trainer.options(num_gpus=1).remote(n, cell.how) for n in range(2)]
    ray.get([t.step.remote(0) for t in trainers], timeout=4)
if cell.how == "name":
    ray.get_actor("parameter-server")
trainers = [Trainer.remote(n, cell.how) for n in range(2)]
if cell.how == "method":
    trainers[0].fit.remote()
if cell.how == "arguments":
    ray.get(trainers[0].step.remote())
if cell.how == "plain":
    trainers[0].step(3)
for number in range(10):
    if cell.how == "driver" and number == 3:
        ray.kill(trainers[1])
    print(f"step {number}", ray.get([t.step.remote(number) for t in trainers]), flush=True)
