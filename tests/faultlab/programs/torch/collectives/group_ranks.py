from engine import Job, torch

job = Job()
dist = job.join(seconds=8)
job.prepare()
job.say("building tensor-parallel groups")
if job.how == "mesh":
    from torch.distributed.device_mesh import init_device_mesh

    init_device_mesh("cpu", (job.world, 2), mesh_dim_names=("dp", "tp"))
else:
    dist.new_group([0, job.world])
