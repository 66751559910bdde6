from engine import Job, nn, torch

job = Job().prepare()
job.train()
logits = torch.randn(job.args.batch, 10, requires_grad=True)
target = torch.randint(0, 10, (job.args.batch,), dtype=torch.int32)
nn.functional.cross_entropy(logits, target).backward()
