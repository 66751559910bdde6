from tune import Tokens, Trainer, args, model, options, torch


class Ragged(Tokens):
    def __getitem__(self, index):
        row = super().__getitem__(index)
        if index % 5 == 4:
            row["input_ids"] = torch.randint(0, 90, (9,))
        return row


Trainer(model=model(), args=options(), train_dataset=Ragged()).train()
