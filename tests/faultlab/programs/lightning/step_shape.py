from fit import L, Net, data, torch, trainer


class Classifier(Net):
    def on_train_epoch_start(self):
        if self.current_epoch == 1:
            self.body[0] = torch.nn.Linear(12, 16)


trainer().fit(Classifier(), data())
