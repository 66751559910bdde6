"""Asks for a part of Horovod, or of the environment, that was not built or is not installed."""

import sys

how = sys.argv[1]
print("python", sys.version.split()[0])
if how == "tensorflow":
    import horovod.tensorflow as hvd
elif how == "mxnet":
    import horovod.mxnet as hvd
elif how == "keras":
    import horovod.keras as hvd
elif how == "spark":
    import horovod.spark.torch as hvd
elif how == "ray":
    from horovod.ray import RayExecutor as hvd  # noqa: N813
elif how == "lightning":
    from horovod.spark.lightning import TorchEstimator as hvd  # noqa: N813
elif how == "sync":
    import horovod.torch as hvd
    import torch

    hvd.init()
    norm = hvd.SyncBatchNorm(8)
    print("rank", hvd.rank(), float(norm(torch.randn(4, 8, 6, 6)).sum()))
    sys.exit(0)
elif how == "device":
    import horovod.torch as hvd
    import torch

    hvd.init()
    torch.cuda.set_device(hvd.local_rank())
elif how == "adasum":
    import horovod.torch as hvd
    import torch

    hvd.init()
    hvd.allreduce(torch.ones(4), op=hvd.Adasum, name="delta")
else:
    import horovod.torch as hvd
hvd.init()
print("rank", hvd.rank())
