from engine import Job, torch

job = Job().prepare()
job.train()
x = torch.zeros(2, device={"": "gpu:0", "tpu": "tpu", "mps": "mps"}[job.how])
