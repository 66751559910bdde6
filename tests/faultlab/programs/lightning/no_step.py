from fit import L, data, torch, trainer


class Bare(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(16, 4)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


trainer().fit(Bare(), data())
