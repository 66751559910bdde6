from fit import L, Net, args, data, torch, trainer


class Manual(Net):
    def training_step(self, batch, index):
        loss = super().training_step(batch, index)
        self.optimizers().step()
        self.manual_backward(loss)
        return loss


trainer().fit(Manual(), data())
