from engine import Job, nn, torch


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def foward(self, x):
        return self.fc(x)


job = Job().prepare()
job.train()
Head()(torch.randn(2, 4))
