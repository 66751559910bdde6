import os

import torch.distributed.rpc as rpc
from engine import Job, torch


def score(shape):
    return torch.ones(shape) @ torch.ones(4, 4)


def slow(seconds):
    import time

    time.sleep(seconds)
    return seconds


job = Job().prepare()
options = rpc.TensorPipeRpcBackendOptions(rpc_timeout=4, init_method=f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", _transports=["uv"])
rpc.init_rpc(f"worker{job.rank}", rank=job.rank, world_size=job.world, rpc_backend_options=options)
job.say("agents are up")
if job.rank == 0:
    job.train()
    rpc.rpc_sync('worker1', slow, args=(9,))
rpc.shutdown()
