from fit import L, Net, args, data, torch, trainer


class Classifier(Net):
    def training_step(self, batch, index):
        loss = super().training_step(batch, index)
        if self.global_rank == args.who and self.current_epoch == 1 and index == 2:
            torch.nn.functional.one_hot(batch[1] + 4, 4)
        return loss


trainer(devices=2, strategy="ddp", num_nodes=1).fit(Classifier(), data())
