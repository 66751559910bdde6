from engine import Job

job = Job().prepare()
job.say("importing extras")
if job.how == "vision":
    import torchvision
elif job.how == "flash":
    from flash_attn import flash_attn_func
elif job.how == "apex":
    from apex.optimizers import FusedAdam
elif job.how == "wandb":
    import wandb
elif job.how == "bnb":
    import bitsandbytes as bnb
