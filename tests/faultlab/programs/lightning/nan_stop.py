from fit import L, Net, args, data, torch, trainer


class Classifier(Net):
    def training_step(self, batch, index):
        loss = super().training_step(batch, index)
        return loss * 1e30 * 1e30 if self.current_epoch == 1 else loss


trainer(detect_anomaly=True).fit(Classifier(), data())
