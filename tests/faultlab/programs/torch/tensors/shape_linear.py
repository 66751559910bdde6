from engine import Job, torch

job = Job().prepare()
job.train()
head = torch.nn.Linear(48, 10)
features = torch.randn(job.args.batch, 64)
logits = head(features)
print(logits.shape)
