from engine import Job, nn, torch

job = Job().prepare()
job.train()
table = nn.Embedding(100, 16)
tokens = torch.rand(job.args.batch, 12) * 100
print(table(tokens).shape)
