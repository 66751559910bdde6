from fit import L, Net, data, torch, trainer


class Classifier(Net):
    def training_step(self, batch, index):
        loss = super().training_step(batch, index)
        return {"train_loss": loss}


trainer().fit(Classifier(), data())
