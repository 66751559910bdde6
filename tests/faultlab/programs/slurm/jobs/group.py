"""Ranks of a gloo group over srun; the last one goes wrong."""

import datetime
import os
import sys

how = sys.argv[1]
os.environ.update(RANK=os.environ["SLURM_PROCID"], WORLD_SIZE=os.environ["SLURM_NTASKS"], USE_LIBUV="0", GLOO_SOCKET_IFNAME="lo")
import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=25))
rank, world = dist.get_rank(), dist.get_world_size()
print(f"rank {rank} of {world} ready", flush=True)
model = torch.nn.Linear(8, 2)
for step in range(40):
    grad = torch.randn(8, 2)
    if step == 6 and rank == world - 1:
        if how == "shape":
            model(torch.randn(4, 9))
        if how == "exit":
            os._exit(5)
        if how == "missing":
            torch.load(f"checkpoints/rank{rank}.pt")
        if how == "nan":
            torch.linalg.cholesky(torch.full((3, 3), float("nan")))
        if how == "hang":
            import time

            time.sleep(600)
    dist.all_reduce(grad)
    if rank == 0:
        print(f"step {step} norm {grad.norm():.4f}", flush=True)
