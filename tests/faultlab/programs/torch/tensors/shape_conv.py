from engine import Job, nn, torch

job = Job(model="cnn").prepare()
job.train()
stem = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(32, 16, 3))
images = torch.randn(job.args.batch, 3, 24, 24)
print(stem(images).mean())
