"""Joins, reduces once and ends: what fails here is how it was launched."""

from world import World, hvd, torch

job = World(steps=20).begin()
job.train(until=20)
job.say(f"mean rank {hvd.allreduce(torch.tensor([float(hvd.rank())]), name='ranks').item()}")
