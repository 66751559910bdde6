from engine import Job

job = Job().prepare()
if job.how == "container":
    from torch._six import container_abcs
elif job.how == "inf":
    from torch.utils.data import IterDataPipeline
elif job.how == "amp":
    from torch.cuda.amp import autocast_mode_v2
elif job.how == "sched":
    from torch.optim.lr_scheduler import WarmupCosineLR
