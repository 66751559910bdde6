"""Groups of ranks (process sets) that cannot be."""

from world import World, hvd, torch

job = World(steps=80)
how = job.how
if how == "range":
    hvd.init(process_sets=[hvd.ProcessSet([0, job.world + 2])])
elif how == "fixed":
    hvd.init()
else:
    hvd.init(process_sets="dynamic")
job.prepare()
group = hvd.add_process_set([0])
if how == "twice":
    hvd.add_process_set([0])
elif how == "adasum":
    hvd.allreduce(torch.ones(4), name="expert", op=hvd.Adasum, process_set=group)
elif how == "member":
    hvd.allreduce(torch.ones(4), name="expert", process_set=group)
job.train()
