"""Faults in running systems: kills, frozen brokers, partitions, clock jumps; see `python -m tests.chaos`."""
