"""Trains until somebody ends a rank from outside."""

import time

from world import World

job = World(steps=3000).begin()
for step, (x, y) in job.steps():
    job.report(step, job.learn(x, y))
    time.sleep(0.01)
