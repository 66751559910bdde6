from fit import L, Net, args, data, torch, trainer


class Classifier(Net):
    def on_train_epoch_end(self):
        print(self.trainer.accumulated_loss)


trainer().fit(Classifier(), data())
