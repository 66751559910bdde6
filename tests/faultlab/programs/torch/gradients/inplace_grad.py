from engine import Job, torch

job = Job().prepare()
job.train()
weight = torch.randn(8, 8, requires_grad=True)
hidden = torch.sigmoid(weight @ weight)
hidden += 1
hidden.sum().backward()
