"""A rank is late to join: it prepares its data first."""

import time

from world import World

job = World(steps=40)
if job.mine():
    job.say("unpacking data")
    time.sleep(60)
job.begin()
job.train()
