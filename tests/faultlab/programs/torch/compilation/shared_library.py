import ctypes

from engine import Job, torch

job = Job().prepare()
job.train()
if job.how == "ops":
    torch.ops.load_library("build/libcustom_ops.so")
else:
    ctypes.CDLL({"cudnn": "libcudnn_ops_infer.so.8", "nvrtc": "libnvrtc.so.10.2", "": "libmkl_rt.so.1"}[job.how])
