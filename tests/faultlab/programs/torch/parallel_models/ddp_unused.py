from engine import Job, nn, torch


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.main, self.aux = nn.Linear(20, 10), nn.Linear(20, 10)

    def forward(self, x):
        return self.main(x)


job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
job.model = Two()
model = job.parallel()
for step in range(100):
    loss = model(torch.randn(4, 20)).sum()
    loss.backward()
    job.report(step, float(loss.detach()))
