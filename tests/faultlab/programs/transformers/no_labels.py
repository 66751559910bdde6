from tune import Tokens, Trainer, model, options


class Unlabelled(Tokens):
    def __getitem__(self, index):
        row = super().__getitem__(index)
        del row["labels"]
        return row


Trainer(model=model(), args=options(), train_dataset=Unlabelled()).train()
