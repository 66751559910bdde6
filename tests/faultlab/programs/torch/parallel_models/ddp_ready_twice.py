from engine import Job, nn, torch
from torch.utils.checkpoint import checkpoint

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
job.model = nn.Linear(8, 8)
model = job.parallel()
x = torch.randn(2, 8, requires_grad=True)
out = checkpoint(model.module, x, use_reentrant=True) + checkpoint(model.module, x, use_reentrant=True) + model(x)
out.sum().backward()
