from engine import Job, nn, torch

job = Job().prepare()
job.train()
criterion = nn.CrossEntropyLoss()
logits = torch.randn(job.args.batch * 3 // 4, 10, requires_grad=True)
labels = torch.randint(0, 10, (job.args.batch,))
criterion(logits, labels).backward()
